#include "agent/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/builtin/builtin_author.h"
#include "agent/builtin/writer/program_writer.h"
#include "agent/check.h"
#include "agent/generate/briefing.h"
#include "agent/generate/mixed_author.h"
#include "agent/generate/stored_author.h"
#include "agent/generate/tuning.h"
#include "agent/llm/expected_cost.h"
#include "agent/llm/llm_author.h"
#include "agent/llm/questions.h"
#include "agent/llm/quotation.h"
#include "agent/store/corpus_entry.h"
#include "agent/store/learning.h"
#include "agent/work_folder.h"
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
  std::unique_ptr<retrieval::Lessons> lessons;
  int64_t id = 0;
  std::string target;  // what `auto` has come to
  ReferenceHashes hashes;
  eval::Preflight preflight;
  std::filesystem::path work;      // this run's own folder
  std::vector<std::string> shown;  // uids of the entries that the author saw
  eval::Judge* judge = nullptr;    // idle while an author is opened or asked
};

Result<std::unique_ptr<ChatClient>> open_chat(Run& run) {
  const GenerateOptions& options = run.options;
  if (options.replay) return recorded_chat(*options.replay, *run.store, run.id);
  ChatServices services{curl_client(),
                        [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); },
                        run.events.progress};
  ChatOptions chat = options.chat;
  chat.limits = {options.budget.dollars, options.budget.tokens};
  return live_chat(std::move(chat), std::move(services), *run.store, run.id);
}

Result<std::unique_ptr<Author>> open_llm_author(Run& run) {
  const GenerateOptions& options = run.options;
  auto chat = TRY(open_chat(run));
  auto [author, shown] = TRY(brief(run.reference, run.preflight, {*run.corpus, *run.lessons},
                                   {.target = run.target,
                                    .judge = options.judge,
                                    .retrieved = options.retrieved,
                                    .exclude_near = options.exclude_near,
                                    .context_tokens = options.context_tokens,
                                    .answer_tokens = options.chat.settings.max_output_tokens,
                                    .variants = options.budget.variants,
                                    .parallel = options.replay ? options.replay->parallel : options.parallel,
                                    .progress = run.events.progress,
                                    .measure_eager = [&run] { return run.judge->eager_times(); }}));
  run.shown = std::move(shown);
  if (!options.replay)
    run.events.progress(
        "asking the language model: " +
        to_text(TRY(expected_cost(*run.store, options.chat.settings.model, bytes_of(first_messages(author)),
                                  options.budget.attempts, options.chat.prices))));
  author.answer = [&run](const std::string& question, const std::string& program) {
    run.events.progress("the language model asks: " + in_one_line(question));
    return answer_question({*run.corpus, run.options.program, run.work, run.target}, question, program);
  };
  return llm_author(std::move(chat), std::move(author));
}

Result<std::unique_ptr<Author>> open_author(Run& run) {
  if (run.options.author == "llm") return open_llm_author(run);
  auto builtin = builtin_author(run.reference, {.target = run.target});
  // In a benchmark what was found before is no answer.
  if (run.options.exclude_near == 0 && run.options.batch == 0)
    builtin = author_after(std::move(builtin), stored_author(*run.corpus, run.reference, run.target));
  if (run.options.author == "builtin") return builtin;
  return mixed_author(
      std::move(builtin), [&run] { return open_llm_author(run); },
      {.least_s = run.preflight.least.least_s(), .force = run.options.force, .progress = run.events.progress});
}

// Without the key, and without what of the address may be one.
nlohmann::json told_of_chat(Run& run) {
  const ChatOptions& chat = run.options.chat;
  nlohmann::json object = {{"model", chat.settings.model}, {"prompt", prompt_versions()}};
  object["parallel"] = run.options.parallel;
  if (const auto& replay = run.options.replay)
    object.update({{"model", replay->language_model},
                   {"form", replay->form},
                   {"parallel", replay->parallel},
                   {"replay", replay->model}});
  const auto url = parse_endpoint_url(chat.endpoint.url);
  if (!url) return object;
  object["url"] = url->shown();
  object["form"] = chat.endpoint.form.empty() ? form_of(url->host, url->path) : chat.endpoint.form;
  return object;
}

std::string options_as_json(Run& run) {
  const GenerateOptions& options = run.options;
  nlohmann::json object = {{"attempts", options.budget.attempts},
                           {"minutes", options.budget.minutes},
                           {"dollars", options.budget.dollars},
                           {"dtype", options.judge.dtype},
                           {"target", run.target},
                           {"trials", options.judge.trials}};
  if (options.author != "builtin") object.update(told_of_chat(run));
  return object.dump();
}

// An author's error has its spans in file 0, which is the model.
void point_at_model(Diagnostic& failure, int32_t file) {
  if (failure.span.valid()) failure.span.file = file;
  for (Note& note : failure.notes)
    if (note.span.valid()) note.span.file = file;
}

// A variant is what it varies, with other numbers.
std::string summary_of(const std::vector<Attempt>& attempts, size_t number) {
  const Candidate& candidate = attempts[number].candidate;
  if (!candidate.is_variant) return candidate.summary;
  return attempts[origin_of(attempts, number)].candidate.summary + ", with numbers that a tuner found";
}

Result<bool> remember(Run& run, const GenerateResult& result, const Attempt& best) {
  if (!run.options.add_to_corpus || !teaches(best.told())) return false;
  EntryFacts facts{run.reference,
                   result.preflight,
                   *result.certified,
                   run.options.model.stem().string(),
                   summary_of(result.outcome.attempts, *result.outcome.best),
                   run.options.author,
                   TRY(run.store->uid(run.id)),
                   static_cast<int>(*result.outcome.best),
                   run.shown};
  return run.corpus->add(corpus_entry(facts));
}

Status keep_lessons(Run& run, const std::vector<Attempt>& attempts) {
  return agent::remember(*run.lessons, learn(attempts, {TRY(run.store->uid(run.id)), structure_of(run.reference)}));
}

Status keep_best(Run& run, GenerateResult& result) {
  const Attempt* best = result.best();
  if (!best) return {};
  result.certified = Certified{run.options.output,         best->candidate.source,      run.options.model,
                               run.reference.model_source, run.reference.torch_version, run.hashes,
                               run.options.exporter,       run.options.judge,           best->told(),
                               run.options.version};
  Result<bool> added = remember(run, result, *best);
  if (std::string why; !write_file(run.options.output, best->candidate.source, &why))
    return make_error(DiagnosticKind::output_unwritable, {},
                      fmt::format("cannot write `{}`: {}", run.options.output.string(), why),
                      fmt::format("the program is kept: `tilepilot runs save {} -o FILE` writes it", run.id));
  result.written = true;
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
    auto link = [&](int id) {
      const int from = producer[static_cast<size_t>(id)];
      if (from < 0) return;
      structure.edges.emplace_back(reference.forward.nodes[static_cast<size_t>(from)].op, node.op);
      structure.links.emplace_back(from, static_cast<int>(index));
    };
    for (const eval::GraphArgument& argument : node.args) eval::for_each_value(argument, link);
    for (const auto& [name, argument] : node.kwargs) eval::for_each_value(argument, link);
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

}  // namespace

Result<GenerateResult> generate(SourceMap& sources, const GenerateOptions& options, const GenerateEvents& events) {
  Run run{options, events, {}, nullptr, nullptr, nullptr, 0, {}, {}, {}, {}, {}};
  run.store = TRY(RunStore::open(options.store));
  run.corpus = TRY(retrieval::open_corpus(options.store));
  run.lessons = TRY(retrieval::Lessons::open(options.store));
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
  // An author that sees nothing to do needs no judge, which may have to wait for memory first.
  auto judge = TRY(options.judge.target == "auto" ? eval::open_judge(folder, options.judge)
                                                  : eval::judge_on_demand(folder, options.judge));
  TRY(check_protocol(options.judge, judge->target()));
  run.judge = judge.get();
  run.target = judge->target();
  if (options.judge.target == "auto") events.progress(fmt::format("target: {}", run.target));
  GenerateResult result;
  RunRecord record = TRY(begin(run, result));
  events.on_run(run.id);
  run.preflight = preflight_for(run.reference, run.target, options.judge);
  run.work = work.path();
  auto author = TRY(open_author(run));
  result.run = run.id;
  result.preflight = run.preflight;
  result.outcome = TRY(improve(*author, *judge, std::move(record), options.budget, events.loop));
  if (result.outcome.failure) point_at_model(*result.outcome.failure, model_file);
  if (result.best() != nullptr) run.hashes = hash_reference(folder);
  TRY(keep_best(run, result));
  if (options.add_to_corpus) TRY(keep_lessons(run, result.outcome.attempts));
  return result;
}

}  // namespace tilepilot::agent
