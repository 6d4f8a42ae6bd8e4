#include "agent/llm/endpoint/wire.h"

namespace tilepilot::agent {

using nlohmann::json;

std::string_view role_name(ChatMessage::Role role) {
  switch (role) {
    case ChatMessage::Role::system:
      return "system";
    case ChatMessage::Role::user:
      return "user";
    case ChatMessage::Role::assistant:
      return "assistant";
  }
  return "";
}

const json* member(const json& value, std::initializer_list<const char*> path) {
  const json* current = &value;
  for (const char* key : path) {
    if (!current->is_object() || !current->contains(key)) return nullptr;
    current = &(*current)[key];
  }
  return current;
}

int64_t count_at(const json& value, std::initializer_list<const char*> path) {
  const json* found = member(value, path);
  return found && found->is_number() ? std::max<int64_t>(found->get<int64_t>(), 0) : 0;
}

std::string text_at(const json& value, std::initializer_list<const char*> path) {
  const json* found = member(value, path);
  return found && found->is_string() ? found->get<std::string>() : "";
}

void append_text(json& object, const char* key, const std::string& text) {
  json& value = object[key];
  if (!value.is_string()) value = "";
  value.get_ref<std::string&>() += text;
}

std::string text_of(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const json& part : content) text += part.is_string() ? part.get<std::string>() : text_at(part, {"text"});
  return text;
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace tilepilot::agent
