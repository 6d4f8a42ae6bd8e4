// How conversations become requests and responses replies, in each form. The texts of responses follow the services'
// references and the sources of the local servers.
#include "agent/llm/endpoint/provider.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "agent/llm/endpoint/adaptation.h"
#include "agent/llm/endpoint/endpoint.h"
#include "agent/llm/endpoint/rate_limits.h"
#include "agent/llm/endpoint/spending.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Role = ChatMessage::Role;
using End = ChatReply::End;

const std::vector<ChatMessage>& conversation() {
  static const std::vector<ChatMessage> messages = {
      {Role::system, "be brief"}, {Role::user, "task"}, {Role::assistant, "first"}, {Role::user, "again"}};
  return messages;
}

json request_of(const char* form, ChatSettings settings = {.model = "m"}) {
  return find_provider(form)->request(settings, conversation());
}

ChatReply reply_to(const char* form, const json& response) {
  auto reply = reply_in(*find_provider(form), response.dump());
  EXPECT_TRUE(reply) << response;
  return reply.value_or(ChatReply{});
}

// The response that a stream stands for; whether it is complete.
std::pair<json, bool> put_together(const char* form, const std::vector<json>& events) {
  json response = json::object();
  bool complete = false;
  for (const json& event : events) {
    const std::string text = event.is_string() ? event.get<std::string>() : event.dump();
    complete = find_provider(form)->add_event(response, {"", text}) || complete;
  }
  return {response, complete};
}

TEST(Provider, AsksInTheFormOfOpenAi) {
  const json request = request_of("openai");
  EXPECT_EQ(request["messages"].size(), 4u);
  EXPECT_EQ(request["messages"][0], json({{"role", "system"}, {"content", "be brief"}}));
  EXPECT_EQ(request["max_tokens"], 16'000);
  EXPECT_EQ(request["stream_options"]["include_usage"], true);
  EXPECT_FALSE(request.contains("temperature"));
  EXPECT_FALSE(request_of("openai", {.model = "m", .stream = false}).contains("stream"));
}

TEST(Provider, AsksInTheFormOfOpenAiResponses) {
  const json request = request_of("openai-responses", {.model = "m", .temperature = 0.5});
  EXPECT_EQ(request["instructions"], "be brief");
  EXPECT_EQ(request["input"].size(), 3u);
  EXPECT_EQ(request["store"], false);
  EXPECT_EQ(request["max_output_tokens"], 16'000);
  EXPECT_EQ(request["temperature"], 0.5);
}

TEST(Provider, AsksInTheFormOfAnthropicWithMarksForItsCache) {
  const json request = request_of("anthropic");
  const json mark = {{"type", "ephemeral"}};
  EXPECT_EQ(request["system"][0]["text"], "be brief");
  EXPECT_EQ(request["system"][0]["cache_control"], mark);
  ASSERT_EQ(request["messages"].size(), 3u);
  EXPECT_EQ(request["messages"][0]["content"][0]["cache_control"], mark);
  EXPECT_FALSE(request["messages"][1]["content"][0].contains("cache_control"));
  EXPECT_EQ(request["messages"][2]["content"][0]["cache_control"], mark);
  EXPECT_EQ(request_of("anthropic", {.model = "m", .cache_prompts = false}).dump().find("cache_control"),
            std::string::npos);
}

TEST(Provider, SendsNoEmptyMessageAndNoTwoOfOneRole) {
  const auto messages = alternating({{Role::system, "s"},
                                     {Role::user, "one"},
                                     {Role::assistant, ""},
                                     {Role::user, "two"},
                                     {Role::assistant, "three"}},
                                    true);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].content, "one\n\ntwo");
  const auto merged = alternating(conversation(), /*system_role*/ false);
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].content, "be brief\n\ntask");
}

TEST(Provider, ReadsContentThatIsAListOfParts) {
  const ChatReply reply = reply_to(
      "openai", {{"choices",
                  {{{"message", {{"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}}},
                    {"finish_reason", "stop"}}}}});
  EXPECT_EQ(reply.text, "ab");
  EXPECT_EQ(reply.usage.input, 0);
}

TEST(Provider, ReadsReasoningBesideTheAnswer) {
  for (const char* name : {"reasoning_content", "reasoning"}) {
    const json message = {{"content", nullptr}, {name, "hm"}};
    const ChatReply reply = reply_to("openai", {{"choices", {{{"message", message}, {"finish_reason", "length"}}}},
                                                {"usage", {{"prompt_tokens", 7}, {"completion_tokens", 9}}}});
    EXPECT_EQ(reply.text, "");
    EXPECT_EQ(reply.reasoning, "hm");
    EXPECT_EQ(reply.end, End::cut_off);
    EXPECT_EQ(reply.usage.output, 9);
  }
}

TEST(Provider, PartsThoughtsThatStandInTheText) {
  auto text_and_thoughts = [](const std::string& text) {
    const ChatReply reply =
        reply_to("openai", {{"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}}});
    return std::pair(reply.text, reply.reasoning);
  };
  EXPECT_EQ(text_and_thoughts("<think>\nhm\n</think>\n\nyes"), std::pair(std::string("yes"), std::string("\nhm\n")));
  EXPECT_EQ(text_and_thoughts("hm</think>yes"), std::pair(std::string("yes"), std::string("hm")));
  EXPECT_EQ(text_and_thoughts("<think>for ever"), std::pair(std::string(), std::string("for ever")));
  const std::string program = "```python\nx = '</think>'\n```";
  EXPECT_EQ(text_and_thoughts(program).first, program);
}

TEST(Provider, ReadsRefusals) {
  const json refused = {
      {"choices", {{{"message", {{"content", nullptr}, {"refusal", "I will not"}}}, {"finish_reason", "stop"}}}}};
  EXPECT_EQ(reply_to("openai", refused).end, End::refused);
  EXPECT_EQ(reply_to("openai", refused).text, "I will not");
  EXPECT_EQ(reply_to("anthropic", {{"content", json::array()}, {"stop_reason", "refusal"}}).end, End::refused);
}

TEST(Provider, ReadsResponsesOfOpenAi) {
  const json response = {
      {"status", "incomplete"},
      {"error", nullptr},
      {"incomplete_details", {{"reason", "max_output_tokens"}}},
      {"output",
       {{{"type", "reasoning"}, {"summary", {{{"type", "summary_text"}, {"text", "hm"}}}}},
        {{"type", "message"}, {"content", {{{"type", "output_text"}, {"text", "yes"}}}}}}},
      {"usage", {{"input_tokens", 10}, {"output_tokens", 5}, {"input_tokens_details", {{"cached_tokens", 4}}}}}};
  const ChatReply reply = reply_to("openai-responses", response);
  EXPECT_EQ(reply.text, "yes");
  EXPECT_EQ(reply.reasoning, "hm");
  EXPECT_EQ(reply.end, End::cut_off);
  EXPECT_EQ(reply.usage.cached, 4);
}

TEST(Provider, CountsAllInputOfAnthropic) {
  const ChatReply reply = reply_to(
      "anthropic", {{"type", "message"},
                    {"content", {{{"type", "thinking"}, {"thinking", "hm"}}, {{"type", "text"}, {"text", "yes"}}}},
                    {"stop_reason", "end_turn"},
                    {"usage",
                     {{"input_tokens", 3},
                      {"cache_read_input_tokens", 100},
                      {"cache_creation_input_tokens", 20},
                      {"output_tokens", 7}}}});
  EXPECT_EQ(reply.text, "yes");
  EXPECT_EQ(reply.usage.input, 123);
  // 3 and 7 at their prices, 100 at a tenth, 20 at a quarter more.
  EXPECT_NEAR(cost_of(reply.usage, {.input = 1, .output = 10, .cached_input = 0.1}), (3 + 70 + 10 + 25) * 1e-6, 1e-12);
}

TEST(Provider, PutsStreamsOfOpenAiTogether) {
  auto piece = [](const json& delta, const json& reason) {
    return json{{"choices", {{{"index", 0}, {"delta", delta}, {"finish_reason", reason}}}}};
  };
  const auto [response, complete] =
      put_together("openai", {piece({{"role", "assistant"}, {"content", ""}}, nullptr),
                              piece({{"reasoning_content", "hm"}}, nullptr),
                              piece({{"content", "he"}}, nullptr),
                              piece({{"content", "llo"}}, nullptr),
                              piece(json::object(), "stop"),
                              {{"choices", json::array()}, {"usage", {{"prompt_tokens", 3}, {"completion_tokens", 4}}}},
                              "[DONE]"});
  EXPECT_TRUE(complete);
  const ChatReply reply = reply_to("openai", response);
  EXPECT_EQ(reply.text, "hello");
  EXPECT_EQ(reply.reasoning, "hm");
  EXPECT_EQ(reply.usage.output, 4);
  EXPECT_FALSE(put_together("openai", {piece({{"content", "he"}}, nullptr)}).second);
}

TEST(Provider, PutsStreamsOfAnthropicTogether) {
  const auto [response, complete] = put_together(
      "anthropic",
      {{{"type", "message_start"},
        {"message", {{"content", json::array()}, {"stop_reason", nullptr}, {"usage", {{"input_tokens", 25}}}}}},
       {{"type", "content_block_start"}, {"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}},
       {{"type", "ping"}},
       {{"type", "content_block_delta"}, {"index", 0}, {"delta", {{"type", "text_delta"}, {"text", "hel"}}}},
       {{"type", "content_block_delta"}, {"index", 0}, {"delta", {{"type", "text_delta"}, {"text", "lo"}}}},
       {{"type", "content_block_stop"}, {"index", 0}},
       {{"type", "message_delta"}, {"delta", {{"stop_reason", "max_tokens"}}}, {"usage", {{"output_tokens", 15}}}},
       {{"type", "message_stop"}}});
  EXPECT_TRUE(complete);
  const ChatReply reply = reply_to("anthropic", response);
  EXPECT_EQ(reply.text, "hello");
  EXPECT_EQ(reply.end, End::cut_off);
  EXPECT_EQ(reply.usage.input, 25);
  EXPECT_EQ(reply.usage.output, 15);
}

TEST(Provider, TakesTheWholeResponseThatEndsAStreamOfOpenAi) {
  const json whole = {{"output", {{{"type", "message"}, {"content", {{{"type", "output_text"}, {"text", "hello"}}}}}}},
                      {"usage", {{"input_tokens", 3}, {"output_tokens", 4}}}};
  const auto [response, complete] =
      put_together("openai-responses", {{{"type", "response.created"}, {"response", json::object()}},
                                        {{"type", "response.output_text.delta"}, {"delta", "he"}},
                                        {{"type", "response.completed"}, {"response", whole}}});
  EXPECT_TRUE(complete);
  EXPECT_EQ(reply_to("openai-responses", response).text, "hello");
  const auto broken = put_together("openai-responses", {{{"type", "response.output_text.delta"}, {"delta", "he"}}});
  EXPECT_FALSE(broken.second);
  EXPECT_EQ(reply_to("openai-responses", broken.first).text, "he");
}

TEST(EventStream, FollowsTheRulesOfItsStandard) {
  const auto events =
      events_in(": keep-alive\r\n\r\nevent: a\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\ndata:[DONE]\n\nid: 3\n\ndata: {}");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "a");
  EXPECT_EQ(events[0].data, "{\"x\":\n1}");
  EXPECT_EQ(events[1].data, "[DONE]");
  EXPECT_EQ(events[2].data, "{}");
  EXPECT_EQ(events_in("data: {\"half\": ").size(), 0u);
}

// What services say when they refuse, and what is changed.
struct RefusalCase {
  const char* response;
  const char* change;  // empty: nothing can be changed
};

TEST(Adaptation, ChangesWhatIsRefused) {
  const RefusalCase cases[] = {
      {R"({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "param": "max_tokens"}})",
       "`max_completion_tokens`"},
      {R"({"error": {"message": "Unsupported value: 'temperature' does not support 0.5 with this model.", "param": "temperature"}})",
       "`temperature` is left out"},
      {R"({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options')}]", "code": 400})",
       "`stream_options` is left out"},
      {R"({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]})",
       "`stream_options` is left out"},
      {R"({"error": {"message": "Your organization must be verified to stream this model. Streaming is off.", "param": "stream"}})",
       "not streamed"},
      {R"({"type": "error", "error": {"type": "invalid_request_error", "message": "system.0.cache_control: Extra inputs are not permitted"}})",
       "not marked for caching"},
      {R"({"object": "error", "message": "System role not supported", "code": 400})", "first user message"},
      {R"({"error": {"message": "max_tokens is too large: 16000. This model supports at most 4096 completion tokens, whereas you provided 16000."}})",
       "limited to 4096 tokens"},
      {R"({"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens"}})",
       "limited to 8192 tokens"},
      {R"({"object": "error", "message": "This model's maximum context length is 16384 tokens. However, you requested 17000 tokens (1000 in the messages, 16000 in the completion). Please reduce the length of the messages or completion.", "code": 400})",
       "limited to 15320 tokens"},
      {R"({"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 8192 tokens and your request has 500 input tokens (16000 > 8192 - 500)."}})",
       "limited to 7628 tokens"},
      {R"({"type": "error", "error": {"type": "invalid_request_error", "message": "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000, decrease input length or `max_tokens` and try again"}})",
       "limited to 9936 tokens"},
      {R"({"error": {"code": 400, "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9412, "n_ctx": 8192}})",
       ""},
      {R"({"error": {"message": "upstream error", "code": 400}})", ""},
  };
  for (const RefusalCase& each : cases) {
    SCOPED_TRACE(each.response);
    ChatSettings settings{.model = "m", .temperature = 0.5};
    const EndpointProblem problem = problem_in(json::parse(each.response));
    EXPECT_TRUE(problem.exists());
    const auto change = adapt(settings, problem, 500);
    EXPECT_EQ(change.has_value(), *each.change != '\0');
    if (!change) continue;
    EXPECT_THAT(*change, HasSubstr(each.change));
    // The same refusal once more, of what is not sent any longer, changes nothing.
    EXPECT_NE(adapt(settings, problem, 500), change);
  }
}

TEST(Adaptation, KnowsConversationsThatAreTooLong) {
  const std::pair<const char*, int64_t> cases[] = {
      {R"({"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens."}})",
       128000},
      {R"({"error": {"code": 400, "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it", "type": "exceed_context_size_error"}})",
       8192},
      {R"({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}})",
       200000},
      {R"({"object": "error", "message": "The input (5000 tokens) is longer than the model's context length (4096 tokens).", "code": 400})",
       4096},
      {R"({"error": {"message": "Your input exceeds the context window of this model."}})", 0},
  };
  for (const auto& [response, context] : cases) {
    const EndpointProblem problem = problem_in(json::parse(response));
    EXPECT_TRUE(is_context_overflow(problem)) << response;
    EXPECT_EQ(context_of(problem), context) << response;
  }
}

TEST(Adaptation, FindsNoProblemInReplies) {
  EXPECT_FALSE(problem_in(json::parse(R"({"choices": [], "message": "hello", "error": null})")).exists());
  EXPECT_FALSE(problem_in(json::parse(R"({"type": "message", "content": []})")).exists());
  EXPECT_EQ(problem_in(json::parse(R"({"error": "model not found"})")).message, "model not found");
}

TEST(EndpointUrl, KeepsTheQueryBehindThePath) {
  auto requests_to = [](const char* text) {
    auto url = parse_endpoint_url(text);
    EXPECT_TRUE(url.ok()) << text;
    return url.ok() ? url->with("/chat/completions") : "";
  };
  EXPECT_EQ(requests_to("http://localhost:8000/v1/"), "http://localhost:8000/v1/chat/completions");
  EXPECT_EQ(requests_to("https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21"),
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21");
  EXPECT_EQ(requests_to("HTTP://[::1]:8000/v1/chat/completions?a=b"), "http://[::1]:8000/v1/chat/completions?a=b");
  EXPECT_EQ(parse_endpoint_url("https://h/v1?key=abc&api-version=2")->shown(), "https://h/v1?key=...&api-version=2");
}

TEST(EndpointUrl, FailAddressesThatAreNone) {
  for (const char* text : {"", "localhost:8000/v1", "ftp://host/v1", "file:///etc/passwd", "http://", "http:///v1",
                           "http://host:port/v1", "http://user:secret@host/v1", "http://ho st/v1",
                           "http://host/v1#part", "http://host/\nHeader: x", "http://:80/"}) {
    auto url = parse_endpoint_url(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().kind, DiagnosticKind::bad_usage);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos);
  }
}

HttpResponse with_headers(int status, std::map<std::string, std::string> headers) {
  HttpResponse response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

TEST(RateLimits, AreReadFromHeaders) {
  EXPECT_EQ(parse_duration("6m0.5s"), 360.5);
  EXPECT_EQ(parse_duration("20ms"), 0.02);
  EXPECT_EQ(parse_duration("soon"), std::nullopt);
  const double now = 1'700'000'000;  // 2023-11-14T22:13:20Z
  EXPECT_EQ(wait_told(with_headers(429, {{"retry-after", "7"}}), now), 7);
  EXPECT_EQ(wait_told(with_headers(429, {{"retry-after-ms", "1500"}, {"retry-after", "2"}}), now), 1.5);
  EXPECT_EQ(wait_told(with_headers(429, {{"retry-after", "Tue, 14 Nov 2023 22:13:50 GMT"}}), now), 30);
  EXPECT_EQ(
      wait_told(with_headers(200, {{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "12s"}}),
                now),
      12);
  EXPECT_EQ(
      wait_told(with_headers(200, {{"x-ratelimit-remaining-requests", "3"}, {"x-ratelimit-reset-requests", "12s"}}),
                now),
      std::nullopt);
  EXPECT_EQ(wait_told(with_headers(200, {{"anthropic-ratelimit-input-tokens-remaining", "0"},
                                         {"anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:13:30Z"}}),
                      now),
            10);
  EXPECT_EQ(wait_told(with_headers(503, {}), now), std::nullopt);
}

TEST(Spending, AsksForNothingThatCouldExceedALimit) {
  Meter meter({.input = 1, .output = 10}, {.dollars = 0.1});
  // 20,000 bytes are at most 10,064 tokens: $0.010064; the rest pays for 8993 tokens.
  EXPECT_EQ(meter.affordable_output(20'000, 16'000), 8993);
  EXPECT_EQ(meter.affordable_output(20'000, 1000), 1000);
  meter.charge(0, 0.06);
  EXPECT_EQ(meter.affordable_output(20'000, 16'000), std::nullopt);
  EXPECT_EQ(meter.spent().over, Spending::Over::dollars);
  Meter by_tokens({}, {.tokens = 12'000});
  EXPECT_EQ(by_tokens.affordable_output(4000, 16'000), 12'000 - 2064);
  by_tokens.charge(8000, 0);
  EXPECT_EQ(by_tokens.affordable_output(4000, 16'000), std::nullopt);
  EXPECT_EQ(by_tokens.spent().over, Spending::Over::tokens);
  // A price that is not known may be any.
  EXPECT_EQ(Meter({}, {.dollars = 0}).affordable_output(1000, 16'000), std::nullopt);
  EXPECT_EQ(Meter({}, {.dollars = 1}).affordable_output(1000, 16'000), 16'000);
  EXPECT_EQ(Meter({.input = 1, .output = 1}, {.dollars = 0}).affordable_output(1000, 16'000), std::nullopt);
}

TEST(Spending, TakesThePriceOfTheLongestNameThatFits) {
  const auto file = std::filesystem::temp_directory_path() / ("tilepilot-prices-" + std::to_string(getpid()));
  ASSERT_TRUE(write_file(file, R"({"gpt-*": {"input": 1, "output": 2}, "gpt-5*": {"input": 3, "output": 4},
                                   "exact": {"input": 5, "output": 6, "cached_input": 0.5}})"));
  EXPECT_EQ((*prices_in(file, "gpt-5-mini"))->input, 3);
  EXPECT_EQ((*prices_in(file, "gpt-4"))->input, 1);
  EXPECT_EQ((*prices_in(file, "exact"))->cached_input, 0.5);
  EXPECT_FALSE(prices_in(file, "other")->has_value());
  for (const char* text : {"[]", "{", R"({"m": 3})", R"({"m": {"input": -1}})", R"({"m": {"price": 1}})"}) {
    ASSERT_TRUE(write_file(file, text));
    auto prices = prices_in(file, "m");
    ASSERT_FALSE(prices.ok()) << text;
    EXPECT_EQ(prices.error().kind, DiagnosticKind::bad_usage);
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tilepilot::agent
