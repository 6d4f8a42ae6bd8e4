// Verdicts as JSON: between the worker and its client, and for programs that read ours.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "eval/diagnostic_json.h"
#include "eval/judge.h"
#include "eval/profile/profile.h"
#include "eval/stage_text.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

constexpr std::array<std::pair<Outcome, std::string_view>, 15> kOutcomes = {{
    {Outcome::verified, "verified"},
    {Outcome::compile_error, "compile_error"},
    {Outcome::runtime_error, "runtime_error"},
    {Outcome::wrong_values, "wrong_values"},
    {Outcome::wrong_shape, "wrong_shape"},
    {Outcome::wrong_dtype, "wrong_dtype"},
    {Outcome::wrong_strides, "wrong_strides"},
    {Outcome::not_finite, "not_finite"},
    {Outcome::mutated_input, "mutated_input"},
    {Outcome::weights_mismatch, "weights_mismatch"},
    {Outcome::crashed, "crashed"},
    {Outcome::timed_out, "timed_out"},
    {Outcome::out_of_memory, "out_of_memory"},
    {Outcome::rejected, "rejected"},
    {Outcome::worker_failed, "worker_failed"},
}};

json timing_json(const std::optional<Timing>& timing) {
  if (!timing) return nullptr;
  return {{"median_us", timing->median_us},
          {"low_us", timing->low_us},
          {"high_us", timing->high_us},
          {"samples", timing->samples}};
}

std::optional<Timing> read_timing(const json& node) {
  if (node.is_null()) return std::nullopt;
  return Timing{node.at("median_us"), node.at("low_us"), node.at("high_us"), node.at("samples")};
}

constexpr const char* kBestMode = "best";

json compiled_json(const Verdict& verdict) {
  if (verdict.compiled.empty()) return nullptr;
  json object = {{kBestMode, verdict.best_compiled()->mode}};
  for (const CompiledTiming& each : verdict.compiled) {
    json& mode = object[each.mode] = timing_json(each.timing);
    mode["speedup"] = each.speedup;
    mode["speedup_interval"] = {each.speedup_low, each.speedup_high};
    mode["compile_s"] = each.compile_s;
  }
  return object;
}

std::vector<CompiledTiming> read_compiled(const json& node) {
  std::vector<CompiledTiming> compiled;
  if (node.is_null()) return compiled;
  // Stores of earlier versions have the default mode alone, timed by itself.
  if (node.contains("median_us")) return {{.mode = "default", .timing = *read_timing(node)}};
  for (auto& [mode, each] : node.items()) {
    if (mode == kBestMode) continue;
    auto& interval = each.at("speedup_interval");
    compiled.push_back(
        {mode, *read_timing(each), each.at("speedup"), interval.at(0), interval.at(1), each.at("compile_s")});
  }
  return compiled;
}

json graph_timing_json(const GraphTiming& graph) {
  return {{"candidate", timing_json(graph.candidate)},
          {"eager", timing_json(graph.eager)},
          {"speedup", graph.speedup()},
          {"speedup_interval", {graph.speedup_low, graph.speedup_high}}};
}

GraphTiming read_graph_timing(const json& node) {
  auto& interval = node.at("speedup_interval");
  return {*read_timing(node.at("candidate")), *read_timing(node.at("eager")), interval.at(0), interval.at(1)};
}

json rule_json(const std::optional<KernelBenchRule>& rule) {
  if (!rule) return nullptr;
  return {{"trials", rule->trials}, {"passed", rule->passed}, {"tolerance", rule->tolerance}};
}

json times_json(const KernelBenchTimes& times) {
  return {{"mean_ms", times.mean_ms},
          {"std_ms", times.std_ms},
          {"min_ms", times.min_ms},
          {"max_ms", times.max_ms},
          {"trials", times.trials}};
}

KernelBenchTimes read_times(const json& node) {
  return {node.at("mean_ms"), node.at("std_ms"), node.at("min_ms"), node.at("max_ms"), node.at("trials")};
}

template <class Value>
json optional_json(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}
template <class Value>
std::optional<Value> read_optional(const json& node) {
  return node.is_null() ? std::nullopt : std::optional(node.get<Value>());
}

json state_json(const GpuState& state) {
  return {{"sm_mhz", {{"min", optional_json(state.sm_mhz_low)}, {"max", optional_json(state.sm_mhz_high)}}},
          {"mem_mhz", optional_json(state.mem_mhz)},
          {"power_w", optional_json(state.power_w)},
          {"temperature", optional_json(state.temperature)},
          {"throttled", state.throttled},
          {"samples", state.samples}};
}

GpuState read_state(const json& node) {
  return {.sm_mhz_low = read_optional<int>(node.at("sm_mhz").at("min")),
          .sm_mhz_high = read_optional<int>(node.at("sm_mhz").at("max")),
          .mem_mhz = read_optional<int>(node.at("mem_mhz")),
          .power_w = read_optional<double>(node.at("power_w")),
          .temperature = read_optional<int>(node.at("temperature")),
          .throttled = node.at("throttled"),
          .samples = node.at("samples")};
}

json error_json(const OutputError& error) {
  return {{"trial", error.trial},
          {"output", error.output},
          {"max_abs", error.max_abs},
          {"max_rel", error.max_rel},
          {"eager_max_abs", error.eager_max_abs},
          {"bound", error.bound},
          {"where", error.where},
          {"pattern", error.pattern},
          {"fraction_wrong", error.fraction_wrong}};
}

// JSON has no infinities and writes them as null.
double number(const json& node) {
  return node.is_null() ? std::numeric_limits<double>::infinity() : node.get<double>();
}

OutputError read_error(const json& node) {
  OutputError error;
  node.at("trial").get_to(error.trial);
  node.at("output").get_to(error.output);
  error.max_abs = number(node.at("max_abs"));
  error.max_rel = number(node.at("max_rel"));
  error.eager_max_abs = number(node.at("eager_max_abs"));
  error.bound = number(node.at("bound"));
  node.at("where").get_to(error.where);
  node.at("pattern").get_to(error.pattern);
  error.fraction_wrong = number(node.at("fraction_wrong"));
  return error;
}

json span_json(Span span) { return json::array({span.file, span.begin, span.end}); }
Span read_span(const json& node) { return {node.at(0), node.at(1), node.at(2)}; }

}  // namespace

const CompiledTiming* Verdict::best_compiled() const {
  auto faster = [](const CompiledTiming& a, const CompiledTiming& b) {
    return a.timing.median_us < b.timing.median_us;
  };
  auto found = std::min_element(compiled.begin(), compiled.end(), faster);
  return found == compiled.end() ? nullptr : &*found;
}

std::string_view to_string(Outcome outcome) {
  for (auto& [known, name] : kOutcomes) {
    if (known == outcome) return name;
  }
  return "worker_failed";
}

std::optional<Outcome> parse_outcome(std::string_view name) {
  for (auto& [outcome, known] : kOutcomes) {
    if (known == name) return outcome;
  }
  return std::nullopt;
}

json to_json(const Diagnostic& diagnostic) {
  json notes = json::array();
  for (auto& note : diagnostic.notes) notes.push_back({{"span", span_json(note.span)}, {"message", note.message}});
  return {{"kind", std::string(info(diagnostic.kind).name)},
          {"span", span_json(diagnostic.span)},
          {"message", diagnostic.message},
          {"notes", notes},
          {"hint", diagnostic.hint}};
}

Diagnostic diagnostic_from_json(const json& node) {
  Diagnostic diagnostic{DiagnosticKind::worker_unavailable, read_span(node.at("span")), node.at("message")};
  auto name = node.at("kind").get<std::string>();
  for (auto& known : diagnostic_kinds()) {
    if (known.name == name) diagnostic.kind = known.kind;
  }
  for (auto& note : node.at("notes")) diagnostic.note(read_span(note.at("span")), note.at("message"));
  return std::move(diagnostic.with_hint(node.at("hint")));
}

json to_json(const std::vector<PairedRatio>& ratios) {
  json list = json::array();
  for (const PairedRatio& each : ratios)
    list.push_back({{"other", each.other}, {"ratio", each.ratio}, {"interval", {each.low, each.high}}});
  return list;
}

std::vector<PairedRatio> paired_ratios_from_json(const json& list) {
  std::vector<PairedRatio> ratios;
  for (const json& each : list) {
    auto& interval = each.at("interval");
    ratios.push_back({each.at("other"), each.at("ratio"), interval.at(0), interval.at(1)});
  }
  return ratios;
}

json to_json(const Verdict& verdict) {
  json diagnostics = json::array(), errors = json::array();
  for (auto& diagnostic : verdict.diagnostics) diagnostics.push_back(to_json(diagnostic));
  for (auto& error : verdict.errors) errors.push_back(error_json(error));
  json object = {{"outcome", std::string(to_string(verdict.outcome))},
                 {"detail", verdict.detail},
                 {"target", verdict.target},
                 {"aten", verdict.aten},
                 {"line", verdict.line},
                 {"diagnostics", diagnostics},
                 {"rendered", verdict.rendered},
                 {"errors", errors},
                 {"candidate", timing_json(verdict.candidate)},
                 {"eager", timing_json(verdict.eager)},
                 {"compiled", compiled_json(verdict)},
                 {"launch_bound", verdict.launch_bound},
                 {"speedup", verdict.speedup()},
                 {"generated_share", verdict.generated_share},
                 {"kernels", verdict.kernels},
                 {"notes", verdict.notes},
                 {"degenerate", verdict.degenerate},
                 {"guard", verdict.guard},
                 {"guards_run", verdict.guards_run},
                 {"seconds", verdict.seconds},
                 {"given_inputs_only", verdict.given_inputs_only},
                 {"seed", verdict.seed ? json(*verdict.seed) : json()},
                 {"foreign_source", verdict.foreign_source},
                 {"kernelbench", rule_json(verdict.kernelbench)},
                 {"speedup_interval", json::array({verdict.speedup_low, verdict.speedup_high})}};
  if (auto& timing = verdict.kernelbench_timing)
    object["kernelbench_timing"] = {{"eager", times_json(timing->eager)},
                                    {"candidate", times_json(timing->candidate)},
                                    {"speedup", timing->speedup()}};
  if (!verdict.stages.empty()) object["stages"] = to_json(verdict.stages);
  if (!verdict.paired.empty()) object["paired"] = to_json(verdict.paired);
  if (verdict.graph) object["graph"] = graph_timing_json(*verdict.graph);
  if (verdict.gpu_state) object["gpu_state"] = state_json(*verdict.gpu_state);
  if (verdict.profile) object["profile"] = to_json(*verdict.profile);
  return object;
}

Verdict verdict_from_json(const json& node) {
  Verdict verdict;
  verdict.outcome = parse_outcome(node.at("outcome").get<std::string>()).value_or(Outcome::worker_failed);
  node.at("detail").get_to(verdict.detail);
  verdict.target = node.value("target", "cpu");  // stores of earlier versions name none
  node.at("line").get_to(verdict.line);
  for (auto& item : node.at("diagnostics")) verdict.diagnostics.push_back(diagnostic_from_json(item));
  node.at("rendered").get_to(verdict.rendered);
  for (auto& item : node.at("errors")) verdict.errors.push_back(read_error(item));
  verdict.candidate = read_timing(node.at("candidate"));
  verdict.eager = read_timing(node.at("eager"));
  verdict.compiled = read_compiled(node.at("compiled"));
  verdict.launch_bound = node.value("launch_bound", false);
  if (auto stages = node.find("stages"); stages != node.end()) verdict.stages = stages_from_json(*stages);
  if (auto paired = node.find("paired"); paired != node.end()) verdict.paired = paired_ratios_from_json(*paired);
  if (auto graph = node.find("graph"); graph != node.end()) verdict.graph = read_graph_timing(*graph);
  node.at("generated_share").get_to(verdict.generated_share);
  node.at("kernels").get_to(verdict.kernels);
  node.at("notes").get_to(verdict.notes);
  node.at("degenerate").get_to(verdict.degenerate);
  // Stores of earlier versions have none of these.
  verdict.guard = node.value("guard", "");
  verdict.guards_run = node.value("guards_run", std::map<std::string, int>());
  verdict.seconds = node.value("seconds", std::map<std::string, double>());
  verdict.aten = node.value("aten", "hybrid");
  verdict.given_inputs_only = node.value("given_inputs_only", false);
  verdict.foreign_source = node.value("foreign_source", false);
  if (auto seed = node.find("seed"); seed != node.end() && !seed->is_null()) verdict.seed = seed->get<uint64_t>();
  if (auto rule = node.find("kernelbench"); rule != node.end() && !rule->is_null())
    verdict.kernelbench = KernelBenchRule{rule->at("trials"), rule->at("passed"), rule->at("tolerance")};
  if (auto timing = node.find("kernelbench_timing"); timing != node.end())
    verdict.kernelbench_timing = {read_times(timing->at("eager")), read_times(timing->at("candidate"))};
  if (auto state = node.find("gpu_state"); state != node.end()) verdict.gpu_state = read_state(*state);
  if (auto profile = node.find("profile"); profile != node.end())
    verdict.profile = std::make_shared<const Profile>(profile_from_json(*profile));
  if (auto interval = node.find("speedup_interval"); interval != node.end()) {
    verdict.speedup_low = interval->at(0);
    verdict.speedup_high = interval->at(1);
  }
  return verdict;
}

}  // namespace tilepilot::eval
