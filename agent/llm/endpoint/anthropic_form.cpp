#include "agent/llm/endpoint/forms.h"
#include "agent/llm/endpoint/wire.h"

namespace tilepilot::agent::anthropic {

using nlohmann::json;

// The prefixes that later requests repeat are marked: up to the system message, the task, and all that was said. Four
// marks are allowed.
json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) {
  json body = {{"model", settings.model}, {"max_tokens", settings.max_output_tokens}, {"messages", json::array()}};
  if (settings.temperature) body["temperature"] = *settings.temperature;
  if (settings.stream) body["stream"] = true;
  auto content_of = [&](const ChatMessage& message, bool cached) {
    json part = {{"type", "text"}, {"text", message.content}};
    if (cached && settings.cache_prompts) part["cache_control"] = {{"type", "ephemeral"}};
    return json::array({std::move(part)});
  };
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == ChatMessage::Role::system)
      body["system"] = content_of(message, true);
    else
      body["messages"].push_back(
          {{"role", role_name(message.role)},
           {"content", content_of(message, body["messages"].empty() || i + 1 == messages.size())}});
  }
  return body;
}

std::optional<ChatReply> reply(const json& response) {
  const json* content = member(response, {"content"});
  if (!content || !content->is_array()) return std::nullopt;
  ChatReply reply;
  for (const json& part : *content) {
    const std::string type = text_at(part, {"type"});
    if (type == "text") reply.text += text_at(part, {"text"});
    if (type == "thinking") reply.reasoning += text_at(part, {"thinking"});
  }
  TokenUsage& usage = reply.usage;
  usage.cached = count_at(response, {"usage", "cache_read_input_tokens"});
  usage.cache_written = count_at(response, {"usage", "cache_creation_input_tokens"});
  usage.input = count_at(response, {"usage", "input_tokens"}) + usage.cached + usage.cache_written;
  usage.output = count_at(response, {"usage", "output_tokens"});
  const std::string reason = text_at(response, {"stop_reason"});
  if (reason == "max_tokens" || reason == "model_context_window_exceeded") reply.end = ChatReply::End::cut_off;
  if (reason == "refusal") reply.end = ChatReply::End::refused;
  return reply;
}

bool add_event(json& response, const StreamEvent& event) {
  const json data = json::parse(event.data, nullptr, /*allow_exceptions*/ false);
  const std::string type = text_at(data, {"type"});
  if (type == "error" && data.contains("error")) response["error"] = data["error"];
  if (const json* message = member(data, {"message"}); type == "message_start" && message && message->is_object())
    response = json(*message);
  if (type == "content_block_start" || type == "content_block_delta") {
    const auto index = static_cast<size_t>(count_at(data, {"index"}));
    constexpr size_t kMostBlocks = 1000;
    if (index >= kMostBlocks) return false;
    if (!response["content"].is_array()) response["content"] = json::array();
    while (response["content"].size() <= index) response["content"].push_back(json::object());
    json& block = response["content"][index];
    if (const json* start = member(data, {"content_block"}); start && start->is_object()) block = json(*start);
    const std::string delta = text_at(data, {"delta", "type"});
    const char* key = delta == "text_delta" ? "text" : delta == "thinking_delta" ? "thinking" : nullptr;
    if (key != nullptr) {
      block["type"] = key;
      append_text(block, key, text_at(data, {"delta", key}));
    }
  }
  if (type == "message_delta") {
    if (const std::string reason = text_at(data, {"delta", "stop_reason"}); !reason.empty())
      response["stop_reason"] = reason;
    if (const json* usage = member(data, {"usage"}); usage && usage->is_object())
      for (const auto& [name, value] : usage->items())
        if (!value.is_null()) response["usage"][name] = value;
  }
  return type == "message_stop";
}

}  // namespace tilepilot::agent::anthropic
