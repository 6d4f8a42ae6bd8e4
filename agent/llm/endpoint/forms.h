// The functions behind the rows of the table of providers (agent/llm/endpoint/provider.h says what each does).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "agent/llm/endpoint/provider.h"

namespace tilepilot::agent {

// OpenAI's chat completions (platform reference, "Create chat completion").
namespace openai {
nlohmann::json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages);
std::optional<ChatReply> reply(const nlohmann::json& response);
bool add_event(nlohmann::json& response, const StreamEvent& event);
}  // namespace openai

// OpenAI's responses (platform reference, "Create a model response"). Nothing is kept there: `store` is false, and each
// request holds the whole conversation.
namespace responses {
nlohmann::json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages);
std::optional<ChatReply> reply(const nlohmann::json& response);
bool add_event(nlohmann::json& response, const StreamEvent& event);
}  // namespace responses

// Anthropic's messages (API reference, "Create a Message"; "Streaming Messages"; "Prompt caching").
namespace anthropic {
nlohmann::json request(const ChatSettings& settings, const std::vector<ChatMessage>& messages);
std::optional<ChatReply> reply(const nlohmann::json& response);
bool add_event(nlohmann::json& response, const StreamEvent& event);
}  // namespace anthropic

}  // namespace tilepilot::agent
