#include "agent/llm/endpoint/provider.h"

#include <array>

#include "agent/llm/endpoint/forms.h"

namespace tilepilot::agent {
namespace {

constexpr const char* kJson = "Content-Type: application/json";

constexpr size_t kProviderCount = 3;
const std::array<Provider, kProviderCount>& providers() {
  static const std::array<Provider, kProviderCount> table = {{
      {"openai",
       "/chat/completions",
       "Authorization: Bearer ",
       {kJson},
       openai::request,
       openai::reply,
       openai::add_event},
      {"openai-responses",
       "/responses",
       "Authorization: Bearer ",
       {kJson},
       responses::request,
       responses::reply,
       responses::add_event},
      {"anthropic",
       "/messages",
       "x-api-key: ",
       {kJson, "anthropic-version: 2023-06-01"},
       anthropic::request,
       anthropic::reply,
       anthropic::add_event},
  }};
  return table;
}

}  // namespace

size_t bytes_of(std::span<const ChatMessage> messages) {
  size_t bytes = 0;
  for (const ChatMessage& message : messages) bytes += message.content.size();
  return bytes;
}

const Provider* find_provider(std::string_view form) {
  for (const Provider& provider : providers())
    if (provider.form == form) return &provider;
  return nullptr;
}

std::string provider_forms() {
  std::string text;
  for (const Provider& provider : providers()) text += (text.empty() ? "" : ", ") + std::string(provider.form);
  return text;
}

std::string_view form_of(std::string_view host, std::string_view path) {
  for (const Provider& provider : providers())
    if (path.ends_with(provider.path)) return provider.form;
  return host.starts_with("api.anthropic.com") ? "anthropic" : "openai";
}

std::vector<ChatMessage> alternating(const std::vector<ChatMessage>& messages, bool system_role) {
  std::vector<ChatMessage> result;
  for (ChatMessage message : messages) {
    if (message.content.empty()) continue;
    if (!system_role && message.role == ChatMessage::Role::system) message.role = ChatMessage::Role::user;
    if (!result.empty() && result.back().role == message.role)
      result.back().content += "\n\n" + message.content;
    else
      result.push_back(std::move(message));
  }
  return result;
}

}  // namespace tilepilot::agent
