// tilepilot problem show FILE: what is known of a model before a candidate is written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/work_folder.h"
#include "cli/command.h"
#include "cli/flags/chosen_target.h"
#include "eval/graph/preflight.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct ProblemFlags {
  std::string model;
  bool graph_only = false;
};

// What the judge finds by running the model: whether trivial answers pass, what does not depend on what.
struct Numeric {
  bool ran = false;
  std::string why_not;
  bool degenerate = false;
  std::vector<std::string> notes;
};

std::string tensor_text(const eval::GraphValue& value) {
  if (!value.is_tensor) return value.name;
  return fmt::format("{} {}[{}]", value.name, value.dtype, fmt::join(value.shape, ", "));
}

std::vector<std::string> operator_counts(const eval::Graph& graph) {
  std::vector<std::pair<std::string, int>> counts;
  for (auto& node : graph.nodes) {
    auto found = std::find_if(counts.begin(), counts.end(), [&](auto& each) { return each.first == node.op; });
    if (found == counts.end()) {
      counts.emplace_back(node.op, 1);
    } else {
      ++found->second;
    }
  }
  std::vector<std::string> text;
  for (auto& [op, count] : counts) text.push_back(count == 1 ? op : fmt::format("{} x{}", op, count));
  return text;
}

Numeric run_model(const std::filesystem::path& reference, eval::JudgeOptions options) {
  Numeric numeric;
  options.reference_only = true;
  auto judge = eval::open_judge(reference, options);
  if (!judge.ok()) {
    numeric.why_not = judge.error().message;
    return numeric;
  }
  eval::Verdict verdict = (*judge)->check({.source = "", .name = "", .time = false});
  numeric.ran = true;
  numeric.degenerate = verdict.degenerate;
  numeric.notes = verdict.notes;
  return numeric;
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", bytes / 1e9); }

std::string memory_text(const eval::MemoryNeed& need) {
  std::string text =
      fmt::format("inputs {}, weights {}, outputs {}, one call {} (float64: {}); a check needs {} of memory",
                  gigabytes(static_cast<double>(need.inputs)), gigabytes(static_cast<double>(need.weights)),
                  gigabytes(static_cast<double>(need.outputs)), gigabytes(static_cast<double>(need.eager_peak)),
                  gigabytes(static_cast<double>(need.exact_peak)), gigabytes(static_cast<double>(need.host)));
  if (need.gpu > 0) text += fmt::format(" and {} of the GPU's", gigabytes(static_cast<double>(need.gpu)));
  return text;
}

std::string costs_text(const eval::Preflight& preflight) {
  auto& cost = preflight.cost;
  std::string text = fmt::format("  products       {:.4g} GFLOP", cost.product_flops / 1e9);
  if (preflight.product_flops < cost.product_flops)
    text += fmt::format(", {:.4g} after exact shortcuts", preflight.product_flops / 1e9);
  if (cost.dead_flops > 0) text += fmt::format("; {:.4g} more that no output needs", cost.dead_flops / 1e9);
  text += fmt::format("\n  other work     {:.4g} GFLOP\n", cost.other_flops / 1e9);
  text += fmt::format("  bytes          {} at least, {} in eager\n", gigabytes(static_cast<double>(cost.least_bytes)),
                      gigabytes(cost.eager_bytes));
  text +=
      fmt::format("  eager          {} kernels, {:.4g} us by the same rates\n", cost.launches, preflight.eager_s * 1e6);
  text +=
      fmt::format("  roofline       {:.4g} us ({}-bound) on {}{}\n", preflight.least.least_s() * 1e6,
                  preflight.least.bound(), preflight.rates.name, preflight.rates.assumed ? ", by its data sheet" : "");
  const double least = preflight.least.least_s();
  if (least > 0) text += fmt::format("  headroom       {:.3g}x\n", preflight.eager_s / least);
  return text;
}

std::string full_text(const eval::Reference& reference, const eval::Preflight& preflight, const Numeric& numeric) {
  std::string text;
  auto& graph = reference.forward;
  for (int id : graph.inputs)
    text += fmt::format("  input          {}\n", tensor_text(graph.values[static_cast<size_t>(id)]));
  eval::for_each_value(graph.outputs, [&](int id) {
    text += fmt::format("  output         {}\n", tensor_text(graph.values[static_cast<size_t>(id)]));
  });
  text += fmt::format("  graph          {}\n", fmt::join(operator_counts(graph), ", "));
  text += costs_text(preflight);
  text += fmt::format("  memory         {}\n", memory_text(preflight.memory));
  for (auto& shortcut : preflight.shortcuts) {
    text += fmt::format("  shortcut       {}: {}{}\n", eval::to_string(shortcut.kind), shortcut.sentence,
                        shortcut.line > 0 ? fmt::format(" (line {})", shortcut.line) : "");
  }
  for (auto& name : preflight.unused) text += fmt::format("  unused         no output depends on `{}`\n", name);
  if (preflight.random) text += "  random         `forward` draws random numbers\n";
  for (auto& why : preflight.degenerate) text += fmt::format("  degenerate     {}\n", why);
  if (numeric.degenerate)
    text += "  degenerate     an answer that computes nothing passes: a speed-up means nothing here\n";
  for (auto& note : numeric.notes) text += fmt::format("  note           {}\n", note);
  if (!numeric.ran && !numeric.why_not.empty()) text += fmt::format("  not run        {}\n", numeric.why_not);
  text.pop_back();
  return text;
}

json as_json(const eval::Reference& reference, const eval::Preflight& preflight, const Numeric& numeric) {
  json object = eval::to_json(preflight);
  auto& graph = reference.forward;
  auto tensor = [&](int id) {
    auto& value = graph.values[static_cast<size_t>(id)];
    return json{{"name", value.name}, {"dtype", value.dtype}, {"shape", value.shape}};
  };
  object["inputs"] = json::array();
  object["outputs"] = json::array();
  for (int id : graph.inputs) object["inputs"].push_back(tensor(id));
  eval::for_each_value(graph.outputs, [&](int id) { object["outputs"].push_back(tensor(id)); });
  object["operators"] = json::array();
  for (auto& node : graph.nodes) object["operators"].push_back({{"op", node.op}, {"line", node.line}});
  object["ok"] = true;
  object["scale"] = reference.scale;
  object["ran"] = numeric.ran;
  object["is_degenerate"] = numeric.degenerate || !preflight.degenerate.empty();
  object["notes"] = numeric.notes;
  if (!numeric.why_not.empty()) object["why_not_run"] = numeric.why_not;
  return object;
}

eval::MachineRates rates_for(const Session& session, const runtime::Target& target) {
  if (target.place == runtime::Place::gpu || target.place == runtime::Place::emulator)
    return eval::rates_of_gpu(target.architecture, session.common.dtype);
  return eval::rates_of_processor(session.common.threads, session.environment.cache);
}

struct Shown {
  eval::Reference reference;
  std::unique_ptr<agent::WorkFolder> work;
  std::string too_large;
};

// The whole export; of a model too large for this machine, its graph alone.
Result<Shown> export_model(Session& session, const ProblemFlags& options) {
  auto work = TRY(agent::WorkFolder::make(session.work_folder()));
  agent::ExporterOptions exporter = session.exporter_options();
  exporter.graph_only = options.graph_only;
  Shown shown;
  const auto folder = work.path() / "reference";
  auto reference = agent::export_reference(session.sources, options.model, folder, exporter);
  if (!reference.ok() && reference.error().kind == DiagnosticKind::out_of_memory) {
    shown.too_large = reference.error().message;
    exporter.graph_only = true;
    reference = agent::export_reference(session.sources, options.model, folder, exporter);
  }
  shown.reference = TRY(std::move(reference));
  shown.work = std::make_unique<agent::WorkFolder>(std::move(work));
  return shown;
}

int run_show(Session& session, const ProblemFlags& options) {
  auto target = runtime::parse_target(session.common.target);
  if (!target.ok()) return session.fail(target.error());
  *target = chosen_target(*target);
  auto shown = export_model(session, options);
  if (!shown.ok()) return session.fail(shown.error());
  const bool on_gpu = target->place == runtime::Place::gpu;
  auto preflight = eval::preflight(shown->reference, rates_for(session, *target), on_gpu);
  Numeric numeric;
  numeric.why_not = shown->too_large;
  if (!options.graph_only && shown->too_large.empty()) {
    auto judge = session.judge_options();
    if (!judge.ok()) return session.fail(judge.error());
    if (target->place == runtime::Place::emulator) judge->target = "cpu";
    judge->trials = 3;  // as few as show whether outputs depend on inputs
    numeric = run_model(shown->work->path() / "reference", *judge);
  }
  session.answer(full_text(shown->reference, preflight, numeric));
  session.finish(as_json(shown->reference, preflight, numeric));
  return kDone;
}

}  // namespace

void add_problem(CLI::App& app, Session& session) {
  auto options = std::make_shared<ProblemFlags>();
  auto* problem = app.add_subcommand("problem", "What is known of a model before a program is written for it");
  problem->require_subcommand(1);
  auto* command = problem->add_subcommand(
      "show", "Graph, costs, roofline, exact shortcuts, degeneracies and the memory that judging takes");
  command->add_option("model", options->model, "Python file with class Model, get_inputs() and get_init_inputs()")
      ->type_name("FILE")
      ->required();
  command->add_flag("--graph-only", options->graph_only, "From shapes alone: make no weights, run nothing");
  add_scale(*command, session);
  command->footer("Example:\n  tilepilot problem show examples/rms_norm.py --target cuda:sm_90a");
  command->callback([&session, options] { session.run = [&session, options] { return run_show(session, *options); }; });
}

}  // namespace tilepilot::cli
