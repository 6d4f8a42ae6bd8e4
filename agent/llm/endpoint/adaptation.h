// What an endpoint says when it refuses a request for a reason that another request avoids: a parameter it does not
// know, a limit that is too high, a conversation too long for its model's context. Services word this differently; the
// tables here hold the words of OpenAI, Anthropic, Azure, vLLM, llama.cpp, Ollama and SGLang.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "agent/llm/endpoint/provider.h"

namespace tilepilot::agent {

// A service's own account of a failed request. All empty: it gave none.
struct EndpointProblem {
  std::string message, type, parameter;
  int code = 0;  // HTTP status in the body, where the response's own is 200
  int64_t context_tokens = 0;
  bool exists() const { return !message.empty() || !type.empty(); }
};

// In an error object of any form: {"error": {...}}, {"error": "text"}, {"detail": ...}, {"message": ...} with an
// `object` or `type` of "error". Replies have none.
EndpointProblem problem_in(const nlohmann::json& response);

// Changes what the service refuses; what was changed, in words. nullopt: the problem names nothing that can be changed.
std::optional<std::string> adapt(ChatSettings& settings, const EndpointProblem& problem, int64_t input_tokens);

// Whether the conversation is too long for the model's context.
bool is_context_overflow(const EndpointProblem& problem);
// The context that such a problem tells; 0: it does not.
int64_t context_of(const EndpointProblem& problem);

// Whether the service may answer if it is asked again later.
bool may_pass(const EndpointProblem& problem);

}  // namespace tilepilot::agent
