#include "agent/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/builtin/builtin_author.h"
#include "agent/builtin/program_writer.h"
#include "agent/check.h"
#include "agent/llm/llm_author.h"
#include "agent/work_folder.h"
#include "compiler/runtime/target.h"
#include "compiler/source/file.h"
#include "retrieval/seeds.h"

namespace tilepilot::agent {
namespace {

// What one `generate` holds open.
struct Run {
  const GenerateOptions& options;
  const GenerateEvents& events;
  eval::Reference reference;
  std::unique_ptr<RunStore> store;
  std::unique_ptr<retrieval::Corpus> corpus;
  int64_t id = 0;
  std::string target;  // what `auto` has come to
  ReferenceHashes hashes;
};

Result<std::unique_ptr<ChatClient>> open_chat(Run& run) {
  const GenerateOptions& options = run.options;
  if (options.replay) return recorded_chat(*run.store, *options.replay, run.id, options.chat.form);
  ChatServices services{curl_client(),
                        [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); },
                        run.events.progress};
  return live_chat(options.chat, std::move(services), *run.store, run.id);
}

Result<std::unique_ptr<Author>> open_author(Run& run) {
  if (run.options.author == "builtin") return builtin_author(run.reference, {.target = run.target});
  auto chat = TRY(open_chat(run));
  auto kernels = TRY(run.corpus->search(structure_of(run.reference), "", run.options.retrieved));
  for (const retrieval::Hit& hit : kernels)
    run.events.progress(fmt::format("retrieved {}: {}", hit.entry.name, hit.reason));
  return llm_author(std::move(chat), task_prompt(run.reference, run.target, run.options.judge.aten, kernels));
}

std::string options_as_json(const Run& run) {
  const GenerateOptions& options = run.options;
  nlohmann::json object = {{"attempts", options.budget.attempts},
                           {"minutes", options.budget.minutes},
                           {"dollars", options.budget.dollars},
                           {"dtype", options.judge.dtype},
                           {"target", run.target},
                           {"trials", options.judge.trials}};
  if (options.author == "llm") object.update({{"url", options.chat.url}, {"model", options.chat.settings.model}});
  if (options.replay) object["replay"] = *options.replay;
  return object.dump();
}

retrieval::Entry entry_of(const Run& run, const Attempt& best) {
  retrieval::Entry entry;
  entry.name = run.options.model.stem().string();
  entry.origin = "generated";
  entry.summary = best.candidate.summary;
  entry.structure = structure_of(run.reference);
  entry.source = best.candidate.source;
  entry.speedup = best.told().speedup();
  entry.target = run.target;
  return entry;
}

// An author's error has its spans in file 0, which is the model.
void point_at_model(Diagnostic& failure, int32_t file) {
  if (failure.span.valid()) failure.span.file = file;
  for (Note& note : failure.notes)
    if (note.span.valid()) note.span.file = file;
}

// What passes only because anything trivial would, or only on the given inputs, is nothing to learn from.
bool worth_keeping(const eval::Verdict& verdict) { return !verdict.degenerate && !verdict.given_inputs_only; }

Status keep_best(Run& run, GenerateResult& result) {
  const Attempt* best = result.best();
  if (!best) return {};
  const bool wanted = run.options.add_to_corpus && worth_keeping(best->told());
  Result<bool> added = wanted ? run.corpus->add(entry_of(run, *best)) : Result<bool>(false);
  if (std::string why; !write_file(run.options.output, best->candidate.source, &why))
    return make_error(DiagnosticKind::output_unwritable, {},
                      fmt::format("cannot write `{}`: {}", run.options.output.string(), why),
                      fmt::format("the program is kept: `tilepilot runs save {} -o FILE` writes it", run.id));
  result.written = true;
  result.certified = Certified{run.options.output,
                               best->candidate.source,
                               run.options.model,
                               run.reference.model_source,
                               run.reference.torch_version,
                               run.hashes,
                               run.options.exporter,
                               run.options.judge,
                               best->told(),
                               {}};
  result.added_to_corpus = TRY(std::move(added));
  return {};
}

}  // namespace

retrieval::Structure structure_of(const eval::Reference& reference) {
  retrieval::Structure structure;
  std::vector<int> producer(reference.forward.values.size(), -1);
  for (size_t index = 0; index < reference.forward.nodes.size(); ++index) {
    const eval::GraphNode& node = reference.forward.nodes[index];
    structure.ops.push_back(node.op);
    for (const eval::GraphArgument& argument : node.args)
      if (const int* id = argument.value_id(); id && producer[static_cast<size_t>(*id)] >= 0)
        structure.edges.emplace_back(
            reference.forward.nodes[static_cast<size_t>(producer[static_cast<size_t>(*id)])].op, node.op);
    for (int output : node.outputs)
      if (output >= 0) producer[static_cast<size_t>(output)] = static_cast<int>(index);
  }
  for (const eval::GraphValue& value : reference.forward.values) {
    if (!value.is_tensor) continue;
    structure.largest_elements = std::max(structure.largest_elements, value.numel());
  }
  for (int input : reference.forward.inputs)
    if (const eval::GraphValue& value = reference.forward.values[static_cast<size_t>(input)];
        value.is_tensor && (value.dtype.starts_with("float") || value.dtype == "bfloat16"))
      structure.dtype = value.dtype;
  return structure;
}

namespace {

// The run that is written down: a new one, or one of the same batch that was interrupted, with what it judged and with
// what was nearest when it began.
Result<RunRecord> begin(Run& run, GenerateResult& result) {
  const GenerateOptions& options = run.options;
  const std::string& source = run.reference.model_source;
  std::optional<int64_t> interrupted;
  if (options.batch != 0) interrupted = TRY(run.store->find_interrupted(options.batch, source));
  if (!interrupted) {
    result.neighbour_known = true;
    result.neighbour = TRY(retrieval::nearest_neighbour(*run.corpus, structure_of(run.reference)));
    run.id = TRY(run.store->begin_run(
        {options.model.string(), source, options.author, options_as_json(run), options.batch, result.neighbour}));
    return RunRecord{*run.store, run.id};
  }
  run.id = *interrupted;
  auto stored = TRY(run.store->find(run.id));
  if (stored) {
    result.neighbour = stored->neighbour;
    result.neighbour_known = stored->neighbour_known;
  }
  return RunRecord{*run.store, run.id, stored ? std::move(stored->attempts) : std::vector<Attempt>()};
}

eval::Preflight look_at(const Run& run) {
  const auto target = runtime::parse_target(run.target);
  const bool on_gpu = target.ok() && target->place == runtime::Place::gpu;
  const auto& judge = run.options.judge;
  return eval::preflight(run.reference,
                         on_gpu ? eval::rates_of_gpu(target->architecture, judge.dtype)
                                : eval::rates_of_processor(judge.threads, judge.cache),
                         on_gpu);
}

}  // namespace

Result<GenerateResult> generate(SourceMap& sources, const GenerateOptions& options, const GenerateEvents& events) {
  Run run{options, events, {}, nullptr, nullptr, 0, {}, {}};
  run.store = TRY(RunStore::open(options.store));
  run.corpus = TRY(retrieval::open_corpus(options.store));
  TRY(retrieval::sync_seeds(*run.corpus, options.seeds));
  WorkFolder work = TRY(WorkFolder::make(options.work));
  events.progress(fmt::format("exporting {}", options.model.string()));
  const auto folder = work.path() / "reference";
  const auto model_file = static_cast<int32_t>(sources.size());
  ExporterOptions exporter = options.exporter;
  exporter.time_limit_s = std::min(exporter.time_limit_s, options.budget.minutes * 60);
  run.reference = TRY(export_reference(sources, options.model, folder, exporter));
  events.progress(fmt::format("reference: {} operators, {} inputs, {} parameters and buffers",
                              run.reference.forward.nodes.size(), run.reference.forward.inputs.size(),
                              run.reference.parameters.size()));
  if (builtin::depends_on_mode(run.reference))
    events.progress(
        fmt::format("note: the model is in {} mode, and it alone is judged; in the other mode the program of the "
                    "author `builtin` runs the model's own `forward`",
                    run.reference.training ? "training" : "evaluation"));
  auto judge = TRY(eval::open_judge(folder, options.judge));
  TRY(check_protocol(options.judge, judge->target()));
  run.target = judge->target();
  if (options.judge.target == "auto") events.progress(fmt::format("target: {}", run.target));
  GenerateResult result;
  RunRecord record = TRY(begin(run, result));
  events.on_run(run.id);
  auto author = TRY(open_author(run));
  result.run = run.id;
  result.preflight = look_at(run);
  result.outcome = TRY(improve(*author, *judge, std::move(record), options.budget, events.loop));
  if (result.outcome.failure) point_at_model(*result.outcome.failure, model_file);
  if (result.best() != nullptr) run.hashes = hash_reference(folder);
  TRY(keep_best(run, result));
  return result;
}

}  // namespace tilepilot::agent
