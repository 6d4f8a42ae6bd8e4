// HTTP POST, as far as chat endpoints need it. Implemented with libcurl; tests use a fake or a local server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  double time_limit_s = 300;
};

struct HttpResponse {
  int status = 0;  // 0: no response (see `failure`)
  std::string body;
  std::string failure;        // connection refused, timeout, TLS, ...: in the library's words
  double retry_after_s = -1;  // the Retry-After header in seconds; negative: none
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpResponse post(const HttpRequest& request) = 0;
};

std::unique_ptr<HttpClient> curl_client();

}  // namespace tilepilot::agent
