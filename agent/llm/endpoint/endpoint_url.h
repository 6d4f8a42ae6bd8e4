// The address of a chat endpoint: what users give, checked before anything is sent, and where requests go.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

struct EndpointUrl {
  std::string scheme;  // "http" or "https"
  std::string host;    // with its port: "localhost:8000"
  std::string path;    // "/v1", without a slash at its end; may be empty
  std::string query;   // "api-version=2024-10-21", without the question mark; may be empty

  // Where requests go: `path` is appended unless the address ends with it already. The query stays behind it.
  std::string with(std::string_view path) const;
  // The same for messages, logs and the database: values of the query, which may be keys, are left out.
  std::string shown() const;
};

// Errors, of kind `bad_usage`: another scheme than http and https, no host, a user's name or password in it, spaces or
// control characters, a fragment.
Result<EndpointUrl> parse_endpoint_url(std::string_view text);

}  // namespace tilepilot::agent
