#include "agent/llm/http.h"

#include <curl/curl.h>

namespace tilepilot::agent {
namespace {

size_t append(char* data, size_t size, size_t count, void* target) {
  static_cast<std::string*>(target)->append(data, size * count);
  return size * count;
}

struct HandleDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class CurlClient final : public HttpClient {
 public:
  CurlClient() { curl_global_init(CURL_GLOBAL_DEFAULT); }
  ~CurlClient() override { curl_global_cleanup(); }

  HttpResponse post(const HttpRequest& request) override {
    HttpResponse response;
    std::unique_ptr<CURL, HandleDeleter> handle(curl_easy_init());
    std::unique_ptr<curl_slist, HeadersDeleter> headers;
    for (const std::string& header : request.headers)
      headers.reset(curl_slist_append(headers.release(), header.c_str()));
    char problem[CURL_ERROR_SIZE] = "";
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &response.body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.time_limit_s * 1000));
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
      response.failure = problem[0] != '\0' ? problem : curl_easy_strerror(code);
      response.body.clear();
      return response;
    }
    long status = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after);
    response.status = static_cast<int>(status);
    if (retry_after > 0) response.retry_after_s = static_cast<double>(retry_after);
    return response;
  }
};

}  // namespace

std::unique_ptr<HttpClient> curl_client() { return std::make_unique<CurlClient>(); }

}  // namespace tilepilot::agent
