#include "agent/llm/provider.h"

#include <array>
#include <nlohmann/json.hpp>

namespace tilepilot::agent {
namespace {

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

// An object's member at a path of keys, or null.
const json* member(const json& value, std::initializer_list<const char*> path) {
  const json* current = &value;
  for (const char* key : path) {
    if (!current->is_object() || !current->contains(key)) return nullptr;
    current = &(*current)[key];
  }
  return current;
}

int64_t count(const json& body, std::initializer_list<const char*> path) {
  const json* value = member(body, path);
  return value && value->is_number() ? value->get<int64_t>() : 0;
}

// OpenAI's chat completions (platform reference, "Create chat completion").

// Most servers know only the old name of the output limit; OpenAI's reasoning models refuse it.
constexpr const char* kOldLimit = "max_tokens";
constexpr const char* kNewLimit = "max_completion_tokens";

std::vector<std::string> openai_headers(const std::string& key) {
  std::vector<std::string> headers = {"Content-Type: application/json"};
  if (!key.empty()) headers.push_back("Authorization: Bearer " + key);
  return headers;
}

std::string openai_request(const ChatSettings& settings, const std::vector<ChatMessage>& messages) {
  json body = {{"model", settings.model},
               {settings.counts_reasoning ? kNewLimit : kOldLimit, settings.max_output_tokens},
               {"messages", json::array()}};
  if (settings.temperature) body["temperature"] = *settings.temperature;
  for (const ChatMessage& message : messages)
    body["messages"].push_back({{"role", role_name(message.role)}, {"content", message.content}});
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<ChatReply> openai_reply(const std::string& text) {
  json body = json::parse(text, nullptr, /*exceptions*/ false);
  const json* choices = member(body, {"choices"});
  if (!choices || !choices->is_array() || choices->empty()) return std::nullopt;
  const json* message = member(choices->front(), {"message"});
  if (!message || !message->is_object()) return std::nullopt;
  // No content: the model said nothing, for example because its reasoning took all the tokens it had.
  const json* content = member(*message, {"content"});
  if (content && !content->is_string() && !content->is_null()) return std::nullopt;
  const json* reason = member(choices->front(), {"finish_reason"});
  return ChatReply{content && content->is_string() ? content->get<std::string>() : "",
                   count(body, {"usage", "prompt_tokens"}), count(body, {"usage", "completion_tokens"}),
                   reason && *reason == "length"};
}

std::string openai_problem(const std::string& text) {
  json body = json::parse(text, nullptr, /*exceptions*/ false);
  const json* message = member(body, {"error", "message"});
  if (!message) message = member(body, {"message"});
  return message && message->is_string() ? message->get<std::string>() : "";
}

bool openai_adapt(ChatSettings& settings, const std::string& body) {
  if (settings.counts_reasoning || openai_problem(body).find(kNewLimit) == std::string::npos) return false;
  settings.counts_reasoning = true;
  return true;
}

constexpr size_t kProviderCount = 1;
const std::array<Provider, kProviderCount>& providers() {
  static const std::array<Provider, kProviderCount> table = {{
      {"openai", "/chat/completions", openai_headers, openai_request, openai_reply, openai_adapt, openai_problem},
  }};
  return table;
}

}  // namespace

const Provider* find_provider(std::string_view form) {
  for (const Provider& provider : providers())
    if (provider.form == form) return &provider;
  return nullptr;
}

std::string endpoint(const Provider& provider, std::string base_url) {
  while (!base_url.empty() && base_url.back() == '/') base_url.pop_back();
  if (!base_url.ends_with(provider.path)) base_url += provider.path;
  return base_url;
}

}  // namespace tilepilot::agent
