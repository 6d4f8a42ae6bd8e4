#include "agent/llm/endpoint/forms.h"
#include "agent/llm/endpoint/wire.h"

namespace tilepilot::agent::openai {

using nlohmann::json;

// Most servers know only the old name of the output limit; OpenAI's reasoning models refuse it.
json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) {
  json body = {{"model", settings.model},
               {settings.counts_reasoning ? "max_completion_tokens" : "max_tokens", settings.max_output_tokens},
               {"messages", json::array()}};
  if (settings.temperature) body["temperature"] = *settings.temperature;
  if (settings.stream) {
    body["stream"] = true;
    if (settings.stream_usage) body["stream_options"] = {{"include_usage", true}};
  }
  for (const ChatMessage& message : messages)
    body["messages"].push_back({{"role", role_name(message.role)}, {"content", message.content}});
  return body;
}

namespace {

// What DeepSeek, SGLang and vLLM call `reasoning_content`, Ollama, OpenRouter and later vLLMs call `reasoning`.
std::string reasoning_in(const json& message) {
  std::string text = text_at(message, {"reasoning_content"});
  return text.empty() ? text_at(message, {"reasoning"}) : text;
}

TokenUsage usage_in(const json& response) {
  TokenUsage usage{count_at(response, {"usage", "prompt_tokens"}), count_at(response, {"usage", "completion_tokens"})};
  usage.cached = count_at(response, {"usage", "prompt_tokens_details", "cached_tokens"});
  return usage;
}

}  // namespace

std::optional<ChatReply> reply(const json& response) {
  const json* choices = member(response, {"choices"});
  if (!choices || !choices->is_array() || choices->empty()) return std::nullopt;
  const json* message = member(choices->front(), {"message"});
  if (!message || !message->is_object()) return std::nullopt;
  // No content: the model said nothing, for example because its reasoning took all the tokens it had.
  const json* content = member(*message, {"content"});
  if (content && !content->is_string() && !content->is_array() && !content->is_null()) return std::nullopt;
  ChatReply reply{content ? text_of(*content) : "", reasoning_in(*message), usage_in(response)};
  const std::string reason = text_at(choices->front(), {"finish_reason"});
  const std::string refusal = text_at(*message, {"refusal"});
  if (reason == "length") reply.end = ChatReply::End::cut_off;
  if (reason == "content_filter" || !refusal.empty()) reply.end = ChatReply::End::refused;
  if (reply.text.empty()) reply.text = refusal;
  return reply;
}

bool add_event(json& response, const StreamEvent& event) {
  if (event.data == "[DONE]") return response.contains("choices");
  const json chunk = json::parse(event.data, nullptr, /*allow_exceptions*/ false);
  if (chunk.contains("error")) response["error"] = chunk["error"];
  if (const json* usage = member(chunk, {"usage"}); usage && usage->is_object()) response["usage"] = *usage;
  const json* choices = member(chunk, {"choices"});
  if (!choices || !choices->is_array() || choices->empty()) return false;  // the chunk of the counts has none
  if (!response.contains("choices"))
    response["choices"] = {{{"message", {{"role", "assistant"}, {"content", ""}}}, {"finish_reason", nullptr}}};
  json& choice = response["choices"][0];
  const json& part = choices->front();
  if (const json* delta = member(part, {"delta"}))
    for (const char* key : {"content", "reasoning_content", "reasoning", "refusal"})
      if (const json* piece = member(*delta, {key}); piece && !piece->is_null())
        append_text(choice["message"], key, text_of(*piece));
  const std::string reason = text_at(part, {"finish_reason"});
  if (!reason.empty()) choice["finish_reason"] = reason;
  return !reason.empty();
}

}  // namespace tilepilot::agent::openai
