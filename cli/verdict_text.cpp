#include "cli/verdict_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "eval/stage_text.h"

namespace tilepilot::cli {
namespace {

std::string timing_line(std::string_view name, const eval::Timing& timing, const std::string& more = "") {
  return fmt::format("  {:<14} {:>10.1f} us   (quartiles {:.1f} to {:.1f}, {} samples{})\n", name, timing.median_us,
                     timing.low_us, timing.high_us, timing.samples, more);
}

std::string ratio_text(double ratio, double low, double high) {
  return fmt::format("{:.2f}x (95 % interval {:.2f} to {:.2f})", ratio, low, high);
}

// What `torch.compile` takes in each mode, and how the candidate stands against the better one.
std::string compiled_lines(const eval::Verdict& verdict) {
  std::string text;
  for (const eval::CompiledTiming& each : verdict.compiled)
    text += timing_line(each.mode == "default" ? "torch.compile" : each.mode, each.timing,
                        each.compile_s > 0 ? fmt::format("; compiled in {:.0f} s", each.compile_s) : "");
  if (const auto* best = verdict.best_compiled(); best && best->speedup > 0)
    text += fmt::format("  against it     {}, {} mode{}\n",
                        ratio_text(best->speedup, best->speedup_low, best->speedup_high), best->mode,
                        verdict.compiled.size() > 1 ? ", the faster one" : "");
  return text;
}

// Both sides of a launch-bound program as graphs.
std::string graph_lines(const eval::Verdict& verdict) {
  if (!verdict.graph) return "";
  const eval::GraphTiming& graph = *verdict.graph;
  return timing_line("as a graph", graph.candidate) + timing_line("eager's graph", graph.eager) +
         fmt::format("  of the graphs  {}\n", ratio_text(graph.speedup(), graph.speedup_low, graph.speedup_high));
}

// The error nearest to its bound, of all outputs and trials.
const eval::OutputError* tightest(const eval::Verdict& verdict) {
  auto used = [](const eval::OutputError& error) {
    return error.bound > 0 ? error.max_abs / error.bound : error.max_abs;
  };
  auto found = std::max_element(verdict.errors.begin(), verdict.errors.end(),
                                [&](const auto& a, const auto& b) { return used(a) < used(b); });
  return found == verdict.errors.end() ? nullptr : &*found;
}

// Adds where a span [file, begin, end] of the candidate begins, both from 1.
void add_position(nlohmann::json& node, const SourceMap& candidate) {
  const nlohmann::json& span = node.at("span");
  const Span place{span.at(0).get<int32_t>(), span.at(1).get<uint32_t>(), span.at(2).get<uint32_t>()};
  if (!place.valid() || place.file != 0 || place.begin > candidate.text(0).size()) return;
  const auto position = candidate.position(0, place.begin);
  node["line"] = position.line;
  node["column"] = position.column;
}

}  // namespace

std::string state_of(const eval::Verdict& verdict) {
  std::string name(eval::to_string(verdict.outcome));
  if (verdict.outcome == eval::Outcome::verified && verdict.given_inputs_only) name += " for these inputs only";
  if (verdict.foreign_source) name += " with foreign source";
  return verdict.degenerate ? name + ", but degenerate" : name;
}

std::string speedup_text(const eval::Verdict& verdict) {
  if (verdict.speedup_high <= 0) return fmt::format("{:.2f}x", verdict.speedup());
  return ratio_text(verdict.speedup(), verdict.speedup_low, verdict.speedup_high);
}

std::string one_line(const eval::Verdict& verdict) {
  std::string text = state_of(verdict);
  if (verdict.outcome != eval::Outcome::verified) {
    if (verdict.line > 0) text += fmt::format(" at line {}", verdict.line);
    return verdict.detail.empty() ? text : text + ": " + verdict.detail;
  }
  if (verdict.candidate && verdict.eager)
    text += fmt::format(", {:.1f} us against {:.1f} us of eager: {}", verdict.candidate->median_us,
                        verdict.eager->median_us, speedup_text(verdict));
  return text;
}

std::string full_text(const eval::Verdict& verdict) {
  std::string text = one_line(verdict) + "\n";
  if (verdict.target != "cpu") text += fmt::format("  target         {}\n", verdict.target);
  if (!verdict.guard.empty()) text += fmt::format("  guard          {}\n", verdict.guard);
  if (const eval::OutputError* error = tightest(verdict)) {
    text += fmt::format("  largest error  {:.3g}{} of output {}, allowed {:.3g}; PyTorch's own {:.3g}\n",
                        error->max_abs, error->where.empty() ? "" : " at " + error->where, error->output, error->bound,
                        error->eager_max_abs);
    if (!error->pattern.empty()) text += fmt::format("  pattern        {}\n", error->pattern);
  }
  if (!verdict.stages.empty()) text += fmt::format("  stages         {}\n", eval::stages_text(verdict.stages));
  if (verdict.candidate) text += timing_line("candidate", *verdict.candidate);
  if (verdict.eager) text += timing_line("eager", *verdict.eager);
  text += compiled_lines(verdict) + graph_lines(verdict);
  if (!verdict.kernels.empty()) {
    text += fmt::format("  kernels        {}", fmt::join(verdict.kernels, ", "));
    if (verdict.candidate) text += fmt::format(" ({:.0f} % of the time)", verdict.generated_share * 100);
    text += "\n";
  }
  if (!verdict.aten.empty()) text += fmt::format("  ATen policy    {}\n", verdict.aten);
  if (const auto& rule = verdict.kernelbench)
    text += fmt::format("  KernelBench    its own rule, `allclose` within {:g}: right in {} of {} calls\n",
                        rule->tolerance, rule->passed, rule->trials);
  if (const auto& timing = verdict.kernelbench_timing)
    text += fmt::format(
        "  KernelBench    its own timing, means of {} calls: {:.3g} ms against {:.3g} ms of eager: {:.2f}x\n",
        timing->candidate.trials, timing->candidate.mean_ms, timing->eager.mean_ms, timing->speedup());
  for (const std::string& note : verdict.notes) text += fmt::format("  note           {}\n", note);
  text.pop_back();
  return text;
}

nlohmann::json verdict_json(const eval::Verdict& verdict, const std::string& source) {
  nlohmann::json object = eval::to_json(verdict);
  SourceMap candidate;
  candidate.add("candidate", source);
  for (nlohmann::json& diagnostic : object["diagnostics"]) {
    add_position(diagnostic, candidate);
    for (nlohmann::json& note : diagnostic["notes"]) add_position(note, candidate);
  }
  return object;
}

}  // namespace tilepilot::cli
