// One request to a chat endpoint and what came of it, without a second try and without records.
#pragma once

#include <memory>

#include "agent/llm/endpoint/adaptation.h"
#include "agent/llm/endpoint/endpoint_url.h"
#include "agent/llm/endpoint/http.h"
#include "agent/llm/endpoint/provider.h"

namespace tilepilot::agent {

struct EndpointOptions {
  std::string form;        // "openai", "openai-responses", "anthropic"; empty: as the address has it
  std::string url;         // base URL, up to and including the version: "http://localhost:8000/v1"
  std::string key;         // may be empty for local servers
  std::string key_header;  // that the key is sent in, such as "api-key"; empty: as the form, or Azure, has it
  double request_time_limit_s = 900;
  double idle_limit_s = 180;  // without a byte; of answers that are not streamed there is no other sign of life
};

struct EndpointAnswer {
  HttpResponse response;
  std::string body;  // the response as one JSON object, a stream put together; else as it came. The key is left out.
  bool streamed = false;
  bool complete = false;           // the body is whole
  std::optional<ChatReply> reply;  // of a body that holds one, complete or not
  EndpointProblem problem;

  bool ok() const {
    return response.failed == HttpFailure::none && response.status == 200 && complete && reply && !problem.exists();
  }
};

class Endpoint {
 public:
  // Errors, of kind `bad_usage`: an address that is none, an unknown form, a key or header that no request can carry.
  static Result<Endpoint> open(EndpointOptions options, std::unique_ptr<HttpClient> http);

  // The JSON body of a request.
  std::string request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) const;
  EndpointAnswer send(const std::string& request, bool streamed, double seconds) const;

  const Provider& provider() const { return *provider_; }
  const EndpointUrl& url() const { return url_; }

 private:
  Endpoint(EndpointOptions options, EndpointUrl url, const Provider& provider, std::unique_ptr<HttpClient> http)
      : options_(std::move(options)), url_(std::move(url)), provider_(&provider), http_(std::move(http)) {}
  std::vector<std::string> headers() const;

  EndpointOptions options_;
  EndpointUrl url_;
  const Provider* provider_;
  std::unique_ptr<HttpClient> http_;
};

// The reply in the body of an answer, as a recorded run has it, without the reasoning that some models write into
// their text.
std::optional<ChatReply> reply_in(const Provider& provider, const std::string& body);

// What went wrong with an answer that is not `ok`, and what the user can do: of kind `author_failed`.
Error explain(const EndpointAnswer& answer, const Endpoint& endpoint);

}  // namespace tilepilot::agent
