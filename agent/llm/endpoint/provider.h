// The forms in which chat endpoints speak: how a conversation becomes a request, and a response a reply. One row a
// form. The OpenAI form is spoken by most services and by local servers (vLLM, llama.cpp, Ollama, SGLang), each with
// differences of its own, which the functions here let pass.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/llm/endpoint/event_stream.h"

namespace tilepilot::agent {

struct ChatMessage {
  enum class Role { system, user, assistant } role = Role::user;
  std::string content;
};

// Of their contents.
size_t bytes_of(std::span<const ChatMessage> messages);

struct TokenUsage {
  int64_t input = 0;          // all of it, cached or not
  int64_t output = 0;         // reasoning included
  int64_t cached = 0;         // of the input, what was read from a cache of prompts
  int64_t cache_written = 0;  // of the input, what was written to it
  bool estimated = false;     // our own count: the endpoint gave none
};

struct ChatReply {
  enum class End {
    complete,
    cut_off,       // the model hit its output limit
    refused,       // the model or a filter declined; the text says what it said
    too_long,      // the conversation does not fit the model's context: no reply
    unaffordable,  // not asked: the request could have cost more than what is left of the budget
  };
  std::string text;       // without reasoning
  std::string reasoning;  // what the endpoint shows of it
  TokenUsage usage = {};
  End end = End::complete;
  int64_t context_tokens = 0;               // too_long: the model's context, if the endpoint says it
  std::optional<int> exchange = {};         // its number in the run's record
  std::optional<std::string> changed = {};  // of a recorded one: the program that it was a change of
};

// What is asked of the endpoint beside the conversation. What an endpoint refuses is left out in later requests
// (agent/llm/endpoint/adaptation.h).
struct ChatSettings {
  std::string model;
  int max_output_tokens = 16'000;
  std::optional<double> temperature;
  bool stream = true;
  bool stream_usage = true;       // OpenAI form: ask for the counts of tokens at the end of a stream
  bool counts_reasoning = false;  // OpenAI form: the output limit goes by the name that reasoning models take
  bool system_role = true;        // else the system message is the head of the first user message
  bool cache_prompts = true;      // Anthropic form: mark what may be cached
};

struct Provider {
  std::string_view form;        // "openai"
  std::string_view path;        // appended to the base URL, unless it is there already
  std::string_view key_header;  // what the key stands behind: "Authorization: Bearer "
  std::vector<std::string> headers;
  nlohmann::json (*request)(const ChatSettings& settings, const std::vector<ChatMessage>& messages);
  // Of a whole response. nullopt: it is no reply of this form.
  std::optional<ChatReply> (*reply)(const nlohmann::json& response);
  // Adds one event of a stream to the response that it stands for. True: the reply is complete with it.
  bool (*add_event)(nlohmann::json& response, const StreamEvent& event);
};

// The provider of a form, or null.
const Provider* find_provider(std::string_view form);
// "openai, openai-responses, anthropic"
std::string provider_forms();
// The form that an address speaks, by its host and path.
std::string_view form_of(std::string_view host, std::string_view path);

// The conversation as forms want it: no empty message, no two in a row of one role.
std::vector<ChatMessage> alternating(const std::vector<ChatMessage>& messages, bool system_role);

}  // namespace tilepilot::agent
