// The forms in which chat endpoints speak: how a conversation becomes a request, and a response a reply. One row a
// form; the OpenAI form is spoken by most services and local servers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::agent {

struct ChatMessage {
  enum class Role { system, user, assistant } role = Role::user;
  std::string content;
};

struct ChatReply {
  std::string text;
  int64_t input_tokens = 0;
  int64_t output_tokens = 0;
  bool cut_off = false;  // the model hit its output limit
};

struct ChatSettings {
  std::string model;
  int max_output_tokens = 16'000;
  std::optional<double> temperature;
  bool counts_reasoning = false;  // the output limit goes by the name that reasoning models take
};

struct Provider {
  std::string_view form;  // "openai"
  std::string_view path;  // appended to the base URL, unless it is there already
  std::vector<std::string> (*headers)(const std::string& key);
  std::string (*request)(const ChatSettings& settings, const std::vector<ChatMessage>& messages);
  // nullopt: the body is not a reply of this form.
  std::optional<ChatReply> (*reply)(const std::string& body);
  // Changes what the service refuses, as its answer says; false: the answer names nothing that can be changed.
  bool (*adapt)(ChatSettings& settings, const std::string& body);
  // The service's own words about a failed request; empty if it gave none.
  std::string (*problem)(const std::string& body);
};

// The provider of a form, or null.
const Provider* find_provider(std::string_view form);
// The URL that requests go to.
std::string endpoint(const Provider& provider, std::string base_url);

}  // namespace tilepilot::agent
