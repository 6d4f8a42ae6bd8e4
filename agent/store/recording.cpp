#include "agent/store/recording.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tilepilot::agent {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;

json json_of(const Candidate& candidate, std::optional<eval::Outcome> outcome) {
  json object = {{"summary", candidate.summary}, {"source", candidate.source}};
  if (candidate.changes) object["changes"] = *candidate.changes;
  if (candidate.exchange) object["exchange"] = *candidate.exchange;
  if (candidate.is_variant) object["variant"] = true;
  if (outcome) object["outcome"] = eval::to_string(*outcome);
  return object;
}

Candidate candidate_in(const json& object) {
  Candidate candidate{object.at("source"), object.value("summary", "")};
  if (object.contains("changes")) candidate.changes = object["changes"].get<size_t>();
  if (object.contains("exchange")) candidate.exchange = object["exchange"].get<int>();
  candidate.is_variant = object.value("variant", false);
  return candidate;
}

// May throw what nlohmann::json throws.
Recording recording_of(const json& object) {
  Recording recording{object.at("model"), object.at("model_source"), object.value("language_model", ""),
                      object.value("form", "openai"), object.value("parallel", 1)};
  for (const json& exchange : object.at("exchanges"))
    recording.exchanges.push_back({.status = exchange.at("status"),
                                   .reply = exchange.at("reply"),
                                   .failure = exchange.value("failure", ""),
                                   .input_tokens = exchange.value("input_tokens", int64_t{0}),
                                   .output_tokens = exchange.value("output_tokens", int64_t{0})});
  for (const json& attempt : object.at("attempts")) {
    recording.candidates.push_back(candidate_in(attempt));
    const auto outcome = eval::parse_outcome(attempt.value("outcome", ""));
    if (outcome && recording.outcomes.size() + 1 == recording.candidates.size()) recording.outcomes.push_back(*outcome);
  }
  return recording;
}

}  // namespace

std::optional<std::string> Recording::changed_by(int exchange) const {
  for (const Candidate& candidate : candidates)
    if (candidate.exchange == exchange && candidate.changes && *candidate.changes < candidates.size())
      return candidates[*candidate.changes].source;
  return std::nullopt;
}

Result<std::optional<Recording>> load_recording(RunStore& store, int64_t run) {
  auto stored = TRY(store.find(run));
  if (!stored) return std::optional<Recording>();
  Recording recording;
  recording.model = stored->summary.model;
  recording.model_source = stored->model_source;
  // Runs of earlier versions knew one form.
  if (const json options = json::parse(stored->options, nullptr, /*allow_exceptions*/ false); options.is_object()) {
    recording.language_model = options.value("model", "");
    recording.form = options.value("form", "openai");
    recording.parallel = options.value("parallel", 1);
  }
  recording.exchanges = TRY(store.exchanges(run));
  for (const Attempt& attempt : stored->attempts) {
    recording.candidates.push_back(attempt.candidate);
    recording.outcomes.push_back(attempt.verdict.outcome);
  }
  return std::optional(std::move(recording));
}

json to_json(const Recording& recording) {
  json object = {{"recording", kVersion},
                 {"model", recording.model},
                 {"model_source", recording.model_source},
                 {"language_model", recording.language_model},
                 {"form", recording.form},
                 {"parallel", recording.parallel},
                 {"exchanges", json::array()},
                 {"attempts", json::array()}};
  for (const Exchange& exchange : recording.exchanges) {
    json entry = {{"status", exchange.status}, {"reply", exchange.reply}};
    if (!exchange.failure.empty()) entry["failure"] = exchange.failure;
    if (exchange.input_tokens > 0) entry["input_tokens"] = exchange.input_tokens;
    if (exchange.output_tokens > 0) entry["output_tokens"] = exchange.output_tokens;
    object["exchanges"].push_back(std::move(entry));
  }
  for (size_t i = 0; i < recording.candidates.size(); ++i)
    object["attempts"].push_back(json_of(
        recording.candidates[i], i < recording.outcomes.size() ? std::optional(recording.outcomes[i]) : std::nullopt));
  return object;
}

Result<Recording> recording_in(const std::string& text, const std::string& name) {
  auto unreadable = [&](const std::string& why) {
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` is no recording of a run: {}", name, why),
                      "`tilepilot trace RUN --save FILE` writes one");
  };
  try {
    const json object = json::parse(text);
    if (!object.is_object() || !object.contains("recording")) return unreadable("it has no `recording`");
    if (const int version = object["recording"].get<int>(); version > kVersion)
      return unreadable(fmt::format("it is of version {}, and this TilePilot knows {}", version, kVersion));
    return recording_of(object);
  } catch (const json::exception& exception) { return unreadable(exception.what()); }
}

}  // namespace tilepilot::agent
