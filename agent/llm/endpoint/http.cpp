#include "agent/llm/endpoint/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

namespace tilepilot::agent {
namespace {

using HttpClock = std::chrono::steady_clock;

double seconds_since(HttpClock::time_point start) {
  return std::chrono::duration<double>(HttpClock::now() - start).count();
}

constexpr double kLongest = 24 * 3600;  // seconds of a request

// An answer while it comes.
struct Transfer {
  const HttpRequest& request;
  HttpResponse& response;
  HttpClock::time_point start = HttpClock::now(), last_byte = start;

  void heard() {
    last_byte = HttpClock::now();
    if (response.first_byte_s == 0) response.first_byte_s = seconds_since(start);
  }
};

size_t take_body(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.heard();
  std::string& body = transfer.response.body;
  if (static_cast<int64_t>(body.size() + size * count) > transfer.request.most_bytes) {
    transfer.response.failed = HttpFailure::too_large;
    return 0;
  }
  body.append(data, size * count);
  return size * count;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](unsigned char letter) { return std::isspace(letter) != 0; };
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// One line of the head. Those of "100 Continue" come first and are forgotten with the next status line.
size_t take_header(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.heard();
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) transfer.response.headers.clear();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  transfer.response.headers[name] = trimmed(line.substr(colon + 1));
  return size * count;
}

// Called about once a second.
int look_at_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (seconds_since(transfer.last_byte) < transfer.request.idle_limit_s) return 0;
  transfer.response.failed = HttpFailure::idle;
  return 1;
}

HttpFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::none;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::out_of_time;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpFailure::unreachable;
    default:
      return HttpFailure::interrupted;
  }
}

std::string words_for(const HttpResponse& response, const HttpRequest& request, std::string_view library) {
  switch (response.failed) {
    case HttpFailure::idle:
      return fmt::format("nothing came for {:.3g} s", request.idle_limit_s);
    case HttpFailure::out_of_time:
      return fmt::format("the answer was not complete after {:.3g} s", request.time_limit_s);
    case HttpFailure::too_large:
      return fmt::format("the answer is larger than {} MB", request.most_bytes >> 20);
    default:
      return std::string(library);
  }
}

struct HandleDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct HeadersDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

void set_up(CURL* curl, Transfer& transfer, curl_slist* headers, char* problem) {
  const HttpRequest& request = transfer.request;
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_at_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::min(request.time_limit_s, kLongest) * 1000));
}

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
    Transfer transfer{request, response};
    set_up(curl, transfer, headers.get(), problem);
    const CURLcode code = curl_easy_perform(curl);
    long status = 0, sent_bytes = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent_bytes);
    response.status = static_cast<int>(status);
    if (response.failed == HttpFailure::none) response.failed = failure_of(code);
    // A connection that was never made cost nothing, whatever ended it.
    if (response.failed == HttpFailure::out_of_time && sent_bytes == 0) response.failed = HttpFailure::unreachable;
    if (response.failed != HttpFailure::none)
      response.failure = words_for(response, request, problem[0] != '\0' ? problem : curl_easy_strerror(code));
    return response;
  }
};

}  // namespace

std::unique_ptr<HttpClient> curl_client() { return std::make_unique<CurlClient>(); }

}  // namespace tilepilot::agent
