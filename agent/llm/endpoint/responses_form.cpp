#include "agent/llm/endpoint/forms.h"
#include "agent/llm/endpoint/wire.h"

namespace tilepilot::agent::responses {

using nlohmann::json;

json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) {
  json body = {{"model", settings.model},
               {"max_output_tokens", settings.max_output_tokens},
               {"store", false},
               {"input", json::array()}};
  if (settings.temperature) body["temperature"] = *settings.temperature;
  if (settings.stream) body["stream"] = true;
  for (const ChatMessage& message : messages) {
    if (message.role == ChatMessage::Role::system)
      body["instructions"] = message.content;
    else
      body["input"].push_back({{"role", role_name(message.role)}, {"content", message.content}});
  }
  return body;
}

std::optional<ChatReply> reply(const json& response) {
  const json* output = member(response, {"output"});
  if (!output || !output->is_array()) return std::nullopt;
  ChatReply reply;
  bool refused = false;
  for (const json& item : *output) {
    const std::string type = text_at(item, {"type"});
    if (type == "reasoning" && item.contains("summary")) reply.reasoning += text_of(item["summary"]);
    const json* content = member(item, {"content"});
    if (type != "message" || !content || !content->is_array()) continue;
    for (const json& part : *content) {
      const std::string refusal = text_at(part, {"refusal"});
      refused = refused || !refusal.empty();
      reply.text += text_at(part, {"text"}) + refusal;
    }
  }
  reply.usage = {count_at(response, {"usage", "input_tokens"}), count_at(response, {"usage", "output_tokens"})};
  reply.usage.cached = count_at(response, {"usage", "input_tokens_details", "cached_tokens"});
  const std::string why = text_at(response, {"incomplete_details", "reason"});
  if (why == "max_output_tokens") reply.end = ChatReply::End::cut_off;
  if (refused || why == "content_filter") reply.end = ChatReply::End::refused;
  return reply;
}

// The last event holds the whole response. What came before it matters only where the stream breaks off.
bool add_event(json& response, const StreamEvent& event) {
  json data = json::parse(event.data, nullptr, /*allow_exceptions*/ false);
  const std::string type = text_at(data, {"type"});
  if (type == "error") {
    response["error"] = data.contains("error") ? data["error"] : data;
    return false;
  }
  if (type == "response.output_text.delta") {
    if (!response.contains("output"))
      response["output"] = {{{"type", "message"}, {"content", {{{"type", "output_text"}, {"text", ""}}}}}};
    append_text(response["output"][0]["content"][0], "text", text_at(data, {"delta"}));
  }
  if (type != "response.completed" && type != "response.incomplete" && type != "response.failed") return false;
  if (const json* whole = member(data, {"response"}); whole && whole->is_object()) response = json(*whole);
  return type != "response.failed";
}

}  // namespace tilepilot::agent::responses
