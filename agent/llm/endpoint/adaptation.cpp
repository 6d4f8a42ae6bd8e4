#include "agent/llm/endpoint/adaptation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>

#include "agent/llm/endpoint/wire.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool mentions(const EndpointProblem& problem, std::string_view word) {
  return problem.message.find(word) != std::string::npos || problem.parameter.find(word) != std::string::npos;
}

// FastAPI's list of faults: [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}].
std::string text_of_detail(const json& detail) {
  if (detail.is_string()) return detail.get<std::string>();
  if (detail.is_object()) return text_at(detail, {"message"});
  std::string text;
  if (detail.is_array())
    for (const json& fault : detail) {
      const json* place = member(fault, {"loc"});
      text += (text.empty() ? "" : "; ") + text_at(fault, {"msg"});
      if (place && place->is_array())
        for (const json& step : *place) text += step.is_string() ? " `" + step.get<std::string>() + "`" : "";
    }
  return text;
}

// One parameter that can be left out or said otherwise.
struct Refusal {
  std::string_view parameter;  // as the service names it
  bool (*is_sent)(const ChatSettings&);
  void (*change)(ChatSettings&);
  const char* note;
};

bool is_streamed(const ChatSettings& settings) { return settings.stream; }
void stop_streaming(ChatSettings& settings) { settings.stream = false; }
bool has_system_role(const ChatSettings& settings) { return settings.system_role; }
void merge_system_message(ChatSettings& settings) { settings.system_role = false; }
constexpr const char* kMerged = "the system message is sent as part of the first user message";

constexpr std::array kRefusals = {
    Refusal{"max_completion_tokens", [](const ChatSettings& settings) { return !settings.counts_reasoning; },
            [](ChatSettings& settings) { settings.counts_reasoning = true; },
            "the output limit is sent as `max_completion_tokens`"},
    Refusal{"temperature", [](const ChatSettings& settings) { return settings.temperature.has_value(); },
            [](ChatSettings& settings) { settings.temperature.reset(); }, "`temperature` is left out"},
    Refusal{"cache_control", [](const ChatSettings& settings) { return settings.cache_prompts; },
            [](ChatSettings& settings) { settings.cache_prompts = false; }, "prompts are not marked for caching"},
    Refusal{"stream_options", [](const ChatSettings& settings) { return settings.stream && settings.stream_usage; },
            [](ChatSettings& settings) { settings.stream_usage = false; }, "`stream_options` is left out"},
    Refusal{"include_usage", [](const ChatSettings& settings) { return settings.stream && settings.stream_usage; },
            [](ChatSettings& settings) { settings.stream_usage = false; }, "`stream_options` is left out"},
    // The word alone is in "upstream", too.
    Refusal{"'stream'", is_streamed, stop_streaming, "answers are not streamed"},
    Refusal{"`stream`", is_streamed, stop_streaming, "answers are not streamed"},
    Refusal{"treaming", is_streamed, stop_streaming, "answers are not streamed"},
    Refusal{"ystem role", has_system_role, merge_system_message, kMerged},
    Refusal{"roles must alternate", has_system_role, merge_system_message, kMerged},
};

int64_t number_after(const std::string& text, const std::regex& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, pattern)) return 0;
  std::string digits = match[1].str();
  std::erase(digits, ',');
  return digits.size() > 12 ? 0 : std::stoll(digits);
}

int64_t first_of(const std::string& text, std::initializer_list<const char*> patterns) {
  for (const char* pattern : patterns)
    if (const int64_t found = number_after(text, std::regex(pattern)); found > 0) return found;
  return 0;
}

// What the service counted of the conversation, as far as its message says it.
int64_t input_of(const EndpointProblem& problem) {
  return first_of(lower(problem.message),
                  {R"(([\d,]+) (?:tokens )?(?:in|from) the (?:input )?messages)", R"(([\d,]+) input tokens)",
                   R"(messages resulted in ([\d,]+))", R"(request \(([\d,]+) tokens\))",
                   R"(prompt is too long: ([\d,]+))", R"(context limit: ([\d,]+) \+)"});
}

constexpr int kLeastOutput = 1024;  // tokens: less holds no program

// A limit that is higher than the model's own: the highest number in the message that is lower.
bool lower_output_limit(ChatSettings& settings, const EndpointProblem& problem) {
  if (!mentions(problem, "max_tokens") && !mentions(problem, "max_completion_tokens") &&
      !mentions(problem, "max_output_tokens"))
    return false;
  static const std::regex number(R"(\d+)");
  int best = 0;
  for (std::sregex_iterator it(problem.message.begin(), problem.message.end(), number), end; it != end; ++it) {
    const std::string digits = it->str();
    const int64_t value = digits.size() > 9 ? 0 : std::stoll(digits);
    if (value >= kLeastOutput && value < settings.max_output_tokens) best = std::max(best, static_cast<int>(value));
  }
  if (best > 0) settings.max_output_tokens = best;
  return best > 0;
}

// The conversation fits, but not with so long an answer.
bool make_room_for_output(ChatSettings& settings, const EndpointProblem& problem, int64_t input_tokens) {
  const int64_t context = context_of(problem), counted = input_of(problem);
  if (context == 0) return false;
  const int64_t margin = counted > 0 ? 64 : context / 20;
  const int64_t room = context - (counted > 0 ? counted : input_tokens) - margin;
  if (room < kLeastOutput || room >= settings.max_output_tokens) return false;
  settings.max_output_tokens = static_cast<int>(room);
  return true;
}

}  // namespace

EndpointProblem problem_in(const json& response) {
  EndpointProblem problem;
  if (!response.is_object()) return problem;
  const json* error = member(response, {"error"});
  if (error && error->is_string()) problem.message = error->get<std::string>();
  if (error && error->is_object()) {
    problem.message = text_at(*error, {"message"});
    problem.type = text_at(*error, {"type"});
    if (problem.type.empty() || problem.type == "invalid_request_error") {
      const std::string code = text_at(*error, {"code"});
      if (!code.empty()) problem.type = code;
    }
    problem.parameter = text_at(*error, {"param"});
    problem.code = static_cast<int>(count_at(*error, {"code"}));
    problem.context_tokens = count_at(*error, {"n_ctx"});
    // Some servers send an empty one with every answer.
    const bool is_empty = std::all_of(error->begin(), error->end(), [](const json& member) {
      return member.is_null() || member == "" || member == 0;
    });
    if (!problem.exists() && !(is_empty && response.contains("choices"))) problem.message = dump(*error);
  }
  if (problem.exists()) return problem;
  if (const json* detail = member(response, {"detail"})) problem.message = text_of_detail(*detail);
  const bool is_error = text_at(response, {"object"}) == "error" || text_at(response, {"type"}) == "error" ||
                        !response.contains("choices");
  if (problem.message.empty() && is_error) problem.message = text_at(response, {"message"});
  if (problem.exists()) {
    problem.parameter = text_at(response, {"param"});
    problem.code = static_cast<int>(count_at(response, {"code"}));
  }
  return problem;
}

std::optional<std::string> adapt(ChatSettings& settings, const EndpointProblem& problem, int64_t input_tokens) {
  const bool overflow = is_context_overflow(problem);
  if (overflow && !make_room_for_output(settings, problem, input_tokens)) return std::nullopt;
  if (overflow || lower_output_limit(settings, problem))
    return fmt::format("answers are limited to {} tokens", settings.max_output_tokens);
  for (const Refusal& refusal : kRefusals) {
    if (!mentions(problem, refusal.parameter) || !refusal.is_sent(settings)) continue;
    refusal.change(settings);
    return refusal.note;
  }
  return std::nullopt;
}

bool is_context_overflow(const EndpointProblem& problem) {
  if (problem.type == "context_length_exceeded" || problem.type == "exceed_context_size_error") return true;
  const std::string message = lower(problem.message);
  for (const char* words :
       {"maximum context length", "exceeds the available context", "context size", "prompt is too long",
        "exceed context limit", "context window", "longer than the model's context", "context length"})
    if (message.find(words) != std::string::npos) return true;
  return false;
}

int64_t context_of(const EndpointProblem& problem) {
  if (problem.context_tokens > 0) return problem.context_tokens;
  return first_of(lower(problem.message),
                  {R"(context length (?:is |of |\()(?:only )?([\d,]+))", R"(context size \(([\d,]+))",
                   R"(> ([\d,]+) maximum)", R"(context limit: [\d,]+ \+ [\d,]+ > ([\d,]+))",
                   R"(context window (?:is |of |\()([\d,]+))", R"(model's context length \(([\d,]+))"});
}

bool may_pass(const EndpointProblem& problem) {
  if (problem.code == 408 || problem.code == 429 || problem.code >= 500) return true;
  const std::string type = lower(problem.type);
  for (const char* word : {"overloaded", "rate_limit", "server_error", "api_error", "timeout", "unavailable"})
    if (type.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace tilepilot::agent
