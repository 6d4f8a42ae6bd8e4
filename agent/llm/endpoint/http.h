// HTTP POST, as far as chat endpoints need it. Implemented with libcurl; tests use a fake or a local server. Redirects
// are answers like any other: what follows them would take the key to another host.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

inline constexpr int64_t kMostReplyBytes = 64 << 20;

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  double time_limit_s = 300;             // in all
  double idle_limit_s = 120;             // without a byte from the other side
  int64_t most_bytes = kMostReplyBytes;  // of the answer's body
};

enum class HttpFailure {
  none,
  unreachable,  // no connection: the other side has not seen the request
  interrupted,  // the connection broke
  idle,         // no byte came for `idle_limit_s`
  out_of_time,  // `time_limit_s`
  too_large,    // the body is longer than `most_bytes`
};

struct HttpResponse {
  int status = 0;    // 0: no status line came
  std::string body;  // with a failure: what came until then
  HttpFailure failed = HttpFailure::none;
  std::string failure;                         // of what failed, in words
  std::map<std::string, std::string> headers;  // names in lower case
  double first_byte_s = 0;                     // from the start to the first byte of the answer

  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : found->second;
  }
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpResponse post(const HttpRequest& request) = 0;
};

std::unique_ptr<HttpClient> curl_client();

}  // namespace tilepilot::agent
