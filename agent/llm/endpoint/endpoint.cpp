#include "agent/llm/endpoint/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "agent/llm/endpoint/wire.h"
#include "agent/llm/quotation.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

Error failed(std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::author_failed, {}, std::move(message), std::move(hint));
}

Error bad_usage(std::string message, std::string hint) {
  return make_error(DiagnosticKind::bad_usage, {}, std::move(message), std::move(hint));
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char letter) { return letter < ' ' || letter == 0x7f; });
}

bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_';
  });
}

// Services quote what they were sent.
void leave_out_key(std::string& text, const std::string& key) {
  constexpr size_t kShortest = 4;
  if (key.size() < kShortest) return;
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at))
    text.replace(at, key.size(), "[key]");
}

struct Pair {
  std::string_view open, close;
};
constexpr std::array kThoughts = {Pair{"<think>", "</think>"}, Pair{"<thinking>", "</thinking>"},
                                  Pair{"[THINK]", "[/THINK]"}};

// Models whose server does not part reasoning from the answer write it into their text, at its beginning; templates of
// some open the thought themselves, so that only its end is there.
void part_reasoning(ChatReply& reply) {
  for (const Pair& thought : kThoughts) {
    const size_t begin = reply.text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) return;
    const bool opens = std::string_view(reply.text).substr(begin).starts_with(thought.open);
    const size_t end = reply.text.find(thought.close);
    if (end == std::string::npos && opens) {
      reply.reasoning += reply.text.substr(begin + thought.open.size());
      reply.text.clear();
      return;
    }
    const size_t fence = reply.text.find("```");
    if (end == std::string::npos || (!opens && fence < end)) continue;
    const size_t from = opens ? begin + thought.open.size() : begin;
    reply.reasoning += reply.text.substr(from, end - from);
    const size_t rest = reply.text.find_first_not_of(" \t\r\n", end + thought.close.size());
    reply.text = rest == std::string::npos ? "" : reply.text.substr(rest);
    return;
  }
}

std::optional<ChatReply> parsed(const Provider& provider, const json& response) {
  auto reply = provider.reply(response);
  if (reply) part_reasoning(*reply);
  return reply;
}

void read_stream(EndpointAnswer& answer, const Provider& provider) {
  json response = json::object();
  for (const StreamEvent& event : events_in(answer.response.body))
    answer.complete = provider.add_event(response, event) || answer.complete;
  answer.streamed = true;
  answer.problem = problem_in(response);
  answer.reply = parsed(provider, response);
  answer.body = dump(response);
}

void read_body(EndpointAnswer& answer, const Provider& provider) {
  answer.body = answer.response.body;
  const json response = json::parse(answer.body, nullptr, /*allow_exceptions*/ false);
  answer.complete = response.is_object();
  answer.problem = problem_in(response);
  if (answer.complete) answer.reply = parsed(provider, response);
}

std::string no_answer(const EndpointAnswer& answer, const Endpoint& endpoint) {
  return fmt::format("no answer from `{}`: {}", endpoint.url().shown(), answer.response.failure);
}

}  // namespace

Result<Endpoint> Endpoint::open(EndpointOptions options, std::unique_ptr<HttpClient> http) {
  EndpointUrl url = TRY(parse_endpoint_url(options.url));
  if (options.form.empty()) options.form = form_of(url.host, url.path);
  const Provider* provider = find_provider(options.form);
  if (!provider)
    return bad_usage(fmt::format("unknown form of endpoint {}", in_backticks(options.form)),
                     fmt::format("this version speaks {}", provider_forms()));
  // A line break would end the header that carries the key, or start another one.
  if (has_control_characters(options.key))
    return bad_usage("the key holds a line break or another control character", "give the key alone, on one line");
  if (!options.key_header.empty() && !is_token(options.key_header))
    return bad_usage(fmt::format("{} is no name of a header", in_backticks(options.key_header)),
                     "for example `--llm-key-header api-key`");
  return Endpoint(std::move(options), std::move(url), *provider, std::move(http));
}

std::vector<std::string> Endpoint::headers() const {
  std::vector<std::string> headers = provider_->headers;
  if (options_.key.empty()) return headers;
  const std::string host = url_.host.substr(0, url_.host.find(':'));
  std::string before_key(provider_->key_header);
  if (host.ends_with(".azure.com")) before_key = "api-key: ";
  if (!options_.key_header.empty()) before_key = options_.key_header + ": ";
  headers.push_back(before_key + options_.key);
  return headers;
}

std::string Endpoint::request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) const {
  return dump(provider_->request(settings, alternating(messages, settings.system_role)));
}

EndpointAnswer Endpoint::send(const std::string& request, bool streamed, double seconds) const {
  EndpointAnswer answer;
  // What streams is limited by silence, and by the run.
  const double limit = streamed ? seconds : std::min(options_.request_time_limit_s, seconds);
  answer.response = http_->post({.url = url_.with(provider_->path),
                                 .headers = headers(),
                                 .body = request,
                                 .time_limit_s = limit,
                                 .idle_limit_s = streamed ? options_.idle_limit_s : limit});
  leave_out_key(answer.response.body, options_.key);
  leave_out_key(answer.response.failure, options_.key);
  for (auto& [name, value] : answer.response.headers) leave_out_key(value, options_.key);
  const bool is_stream =
      answer.response.status == 200 && is_event_stream(answer.response.header("content-type"), answer.response.body);
  if (is_stream)
    read_stream(answer, *provider_);
  else
    read_body(answer, *provider_);
  leave_out_key(answer.body, options_.key);  // which may have come in two parts of a stream
  if (answer.reply) leave_out_key(answer.reply->text, options_.key);
  return answer;
}

std::optional<ChatReply> reply_in(const Provider& provider, const std::string& body) {
  const json response = json::parse(body, nullptr, /*allow_exceptions*/ false);
  return problem_in(response).exists() ? std::nullopt : parsed(provider, response);
}

Error explain(const EndpointAnswer& answer, const Endpoint& endpoint) {
  const HttpResponse& response = answer.response;
  if (response.failed != HttpFailure::none)
    return failed(no_answer(answer, endpoint),
                  response.failed == HttpFailure::unreachable
                      ? "check `--llm-url` and the network; `--author builtin` needs neither"
                      : "");
  const std::string words = answer.problem.message.empty() ? answer.problem.type : answer.problem.message;
  const std::string detail = words.empty() ? "" : ": " + words;
  if (response.status == 401 || response.status == 403)
    return failed(fmt::format("the endpoint refuses the key ({}){}", response.status, detail),
                  "set `TILEPILOT_API_KEY` to a key that is valid for this endpoint");
  if (response.status == 404)
    return failed(fmt::format("the endpoint does not know this address or model (404){}", detail),
                  "check `--llm-url` (up to and including `/v1`) and `--llm-model`");
  if (response.status >= 300 && response.status < 400)
    return failed(
        fmt::format("the endpoint answered {}, a redirect{}", response.status,
                    response.header("location").empty() ? "" : " to " + in_backticks(response.header("location"))),
        "redirects are not followed, because they would take the key along: give the right `--llm-url`");
  if (response.status != 200) return failed(fmt::format("the endpoint answered {}{}", response.status, detail));
  if (!words.empty()) return failed(fmt::format("the endpoint answered with an error{}", detail));
  if (answer.streamed && !answer.complete) return failed("the endpoint's answer ended before it was complete");
  return failed("the endpoint's answer is not a chat completion",
                fmt::format("check `--llm-url`, and `--llm-form`: requests were made in the form `{}`",
                            endpoint.provider().form));
}

}  // namespace tilepilot::agent
