// tilepilot generate MODEL.py: the main job.
#include "agent/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/flags/certificate_flags.h"
#include "cli/flags/judge_flags.h"
#include "cli/flags/llm_flags.h"
#include "cli/manual/help.h"
#include "cli/store_warning.h"
#include "cli/verdict_text.h"
#include "compiler/source/file.h"
#include "eval/profile/profile_text.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct GenerateFlags {
  std::string model;
  std::string output;
  agent::GenerateOptions generate;
  JudgeFlags judge;
  CertificateFlags certificate;
  LlmFlags llm;
  const CLI::Option* author = nullptr;
};

// "attempts 1 and 3"
std::string names_of(const std::vector<size_t>& attempts) {
  std::string text = attempts.size() == 1 ? "attempt " : "attempts ";
  for (size_t i = 0; i < attempts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == attempts.size() ? " and " : ", ", attempts[i] + 1);
  return text;
}

// How the number that is told was measured.
std::string measured_how(const agent::RunOutcome& outcome) {
  if (outcome.finalists.empty()) return "";
  std::string text = fmt::format("\n  finalists      {} measured side by side", names_of(outcome.finalists));
  if (!outcome.indistinguishable.empty())
    text += fmt::format("; not distinguishable from {}", names_of(outcome.indistinguishable));
  return text;
}

std::string conclusion(const GenerateFlags& options, const agent::GenerateResult& result) {
  const agent::Attempt* best = result.best();
  if (!best && result.outcome.attempts.empty() && result.outcome.ending == agent::Ending::nothing_left)
    return "no program: the author sees nothing in this model that a kernel could compute faster than PyTorch";
  if (!best)
    return fmt::format("no verified program after {} attempts ({})", result.outcome.attempts.size(),
                       agent::to_string(result.outcome.ending));
  const eval::Verdict& verdict = best->told();
  std::string text = fmt::format("{}: attempt {}, {}", options.generate.output.string(), *result.outcome.best + 1,
                                 full_text(verdict)) +
                     measured_how(result.outcome);
  if (verdict.profile && !verdict.profile->kernels.empty())
    text += fmt::format("\n  top kernel     {}", eval::top_kernel_text(*verdict.profile));
  if (verdict.speedup() < 1) return text + "\nnothing tried beats eager; this is the best verified program";
  if (verdict.speedup_high > 0 && verdict.speedup_low <= 1) text += "\nnot distinguishable from eager";
  return text;
}

json attempt_json(const agent::Attempt& attempt) {
  const std::string& source = attempt.candidate.source;
  json object = {{"summary", attempt.candidate.summary}, {"verdict", verdict_json(attempt.verdict, source)}};
  if (attempt.compared) object["compared"] = verdict_json(*attempt.compared, source);
  return object;
}

json as_json(const GenerateFlags& options, const agent::GenerateResult& result) {
  json object = {{"ok", result.written},
                 {"model", options.model},
                 {"run", result.run},
                 {"author", options.generate.author},
                 {"dollars", result.outcome.spending.dollars},
                 {"tokens", result.outcome.spending.tokens},
                 {"ending", agent::to_string(result.outcome.ending)},
                 {"seconds", result.outcome.seconds},
                 {"added_to_corpus", result.added_to_corpus},
                 {"preflight", eval::to_json(result.preflight)},
                 {"attempts", json::array()}};
  if (result.neighbour_known)
    object["neighbour"] = result.neighbour ? retrieval::to_json(*result.neighbour) : json(nullptr);
  for (const agent::Attempt& attempt : result.outcome.attempts) object["attempts"].push_back(attempt_json(attempt));
  if (const agent::Attempt* best = result.best()) {
    object["output"] = options.generate.output.string();
    object["best_attempt"] = *result.outcome.best;
    object["speedup"] = best->told().speedup();
    object["verdict"] = verdict_json(best->told(), best->candidate.source);
    object["finalists"] = result.outcome.finalists;
    object["indistinguishable"] = result.outcome.indistinguishable;
  } else {
    object["reason"] = conclusion(options, result);
  }
  return object;
}

// What a signal leaves of a run: the best program so far. Filled by the run's thread, told by the one that watches for
// signals.
class BestSoFar {
 public:
  BestSoFar(Session& session, std::filesystem::path output) : session_(session), output_(std::move(output)) {
    session.last_words.set([this] { tell(); });
  }
  ~BestSoFar() { session_.last_words.set(nullptr); }

  void begin(int64_t run) {
    std::lock_guard lock(mutex_);
    run_ = run;
  }
  void note(int number, const agent::Attempt& attempt) {
    std::lock_guard lock(mutex_);
    attempts_.resize(std::max(attempts_.size(), static_cast<size_t>(number) + 1));
    attempts_[static_cast<size_t>(number)] = attempt;
  }

 private:
  void tell() {
    std::lock_guard lock(mutex_);
    const auto best = agent::best_of(attempts_);
    std::string why, line = "interrupted before any program was verified";
    json object = {{"ok", false}, {"interrupted", true}, {"run", run_}};
    if (best) {
      const agent::Attempt& attempt = attempts_[*best];
      const bool written = write_file(output_, attempt.candidate.source, &why);
      line = fmt::format("interrupted: attempt {} is the best so far, {}; ", *best + 1, one_line(attempt.told()));
      line += written ? fmt::format("written to `{}`", output_.string())
                      : fmt::format("cannot write `{}`: {}; `tilepilot runs save {} -o FILE` writes it",
                                    output_.string(), why, run_);
      object.update({{"ok", written}, {"best_attempt", *best}, {"speedup", attempt.told().speedup()}});
      object["verdict"] = verdict_json(attempt.told(), attempt.candidate.source);
      if (written) object["output"] = output_.string();
    }
    fmt::print(stderr, "{}\n", line);
    session_.finish(object);
    std::fflush(stdout);
  }

  Session& session_;
  std::filesystem::path output_;
  std::mutex mutex_;
  int64_t run_ = 0;
  std::vector<agent::Attempt> attempts_;
};

agent::GenerateEvents progress_of(const Session& session, BestSoFar& best) {
  agent::GenerateEvents events;
  events.on_run = [&best](int64_t run) { best.begin(run); };
  events.progress = [&session](const std::string& line) { session.progress(line); };
  events.loop.on_candidate = [&session](int number, const agent::Candidate& candidate) {
    session.progress(fmt::format("attempt {}: {}", number + 1, candidate.summary));
  };
  events.loop.on_attempt = [&](int number, const agent::Attempt& attempt) {
    best.note(number, attempt);
    session.progress(fmt::format("attempt {}: {}", number + 1, one_line(attempt.verdict)));
    for (const std::string& diagnostic : attempt.verdict.rendered) session.progress_text(diagnostic);
  };
  events.loop.on_paired = [&](int number, const agent::Attempt& attempt) {
    best.note(number, attempt);
    for (const agent::Pairing& each : attempt.pairings)
      session.progress(fmt::format("attempt {} beside attempt {}: {:.2f} times as fast ({:.2f} to {:.2f}), {}",
                                   number + 1, each.other + 1, each.ratio, each.low, each.high,
                                   to_string(agent::relation_of(each))));
  };
  events.loop.on_finalists = [&session](const std::vector<size_t>& numbers) {
    session.progress(fmt::format("measuring {} side by side", names_of(numbers)));
  };
  events.loop.on_compared = [&](int number, const agent::Attempt& attempt) {
    best.note(number, attempt);
    session.progress(fmt::format("attempt {} beside the others: {}", number + 1, one_line(attempt.told())));
  };
  return events;
}

// Whether the result can be written is found out before the run, not after it.
Status probe_output(const std::filesystem::path& output, const std::filesystem::path& model) {
  std::error_code error;
  if (std::filesystem::equivalent(output, model, error))
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` is the model itself, which the program would replace", output.string()),
                      "give `-o` another file");
  const std::string why = why_unwritable(output);
  if (why.empty()) return {};
  return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", output.string(), why),
                    "give `-o` a file that can be written");
}

Status complete(Session& session, GenerateFlags& options) {
  agent::GenerateOptions& generate = options.generate;
  if (options.author->count() == 0 && options.llm.endpoint_given()) generate.author = "mixed";
  TRY(options.llm.check(session, generate.author));
  generate.model = options.model;
  generate.output = options.output.empty() ? std::filesystem::path(generate.model.stem().string() + "_tilepilot.py")
                                           : std::filesystem::path(options.output);
  generate.output = TRY(session.output_file(generate.output));
  TRY(probe_output(generate.output, generate.model));
  TRY(options.certificate.probe());
  generate.judge = TRY(session.judge_options());
  if (generate.judge.target.starts_with("emulate"))
    return make_error(
        DiagnosticKind::bad_usage, {},
        fmt::format("`generate` looks for what is fastest, and `{}` tells no times", generate.judge.target),
        "generate for `cpu` or a GPU, and `tilepilot check` the result in the emulator");
  options.judge.apply_to(generate.judge);
  generate.exporter = session.exporter_options();
  generate.store = session.store_file();
  generate.work = session.work_folder();
  generate.seeds = session.environment.root / "seeds";
  generate.version = version_text(session.environment);
  generate.chat = options.llm.chat;
  generate.budget.dollars = options.llm.dollars;
  if (options.llm.tokens > 0) generate.budget.tokens = options.llm.tokens;
  generate.replay = TRY(options.llm.recording(session));
  generate.context_tokens = options.llm.context;
  generate.parallel = options.llm.parallel;
  generate.program = session.environment.program;
  return {};
}

// A pipe or a device has no place beside it for a certificate.
bool takes_a_stream(const std::filesystem::path& output) {
  std::error_code error;
  return std::filesystem::exists(output, error) && !std::filesystem::is_regular_file(output, error);
}

int run_generate(Session& session, GenerateFlags& options) {
  if (auto status = complete(session, options); !status) return session.fail(status.error());
  if (options.generate.batch == 0) warn_of_shared_store(session);  // `bench run` has told it
  BestSoFar best(session, options.generate.output);
  auto result = agent::generate(session.sources, options.generate, progress_of(session, best));
  if (!result) return session.fail(result.error());
  const agent::RunOutcome& outcome = result->outcome;
  session.answer(conclusion(options, *result));
  json object = as_json(options, *result);
  if (result->certified && !takes_a_stream(options.generate.output))
    options.certificate.write(session, agent::certificate_path(options.generate.output), *result->certified, object);
  if (outcome.failure) object["errors"] = session.explain(*outcome.failure);
  session.finish(object);
  if (result->written) return kDone;
  if (outcome.failure) return exit_code(outcome.failure->kind);
  return outcome.ending == agent::Ending::worker_failed ? kMissing : kNotVerified;
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  auto options = std::make_shared<GenerateFlags>();
  auto* command = app.add_subcommand("generate", "Write a faster, verified program for a PyTorch model");
  agent::GenerateOptions& generate = options->generate;
  command->add_option("model", options->model, "Python file with class Model, get_inputs() and get_init_inputs()")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "Where the program goes (default: MODEL_tilepilot.py in this folder; -: standard output, the answer "
                   "then goes to standard error)")
      ->type_name("FILE");
  options->author =
      command
          ->add_option("--author", generate.author,
                       "Who writes candidates: builtin plans from the op graph, llm asks a language model, "
                       "mixed (the default with --llm-url) does the first, then the second")
          ->check(CLI::IsMember({"builtin", "llm", "mixed"}))
          ->capture_default_str();
  command->add_flag("--force", generate.force,
                    "Author mixed: ask the language model even where little is left to gain");
  command->add_option("--attempts", generate.budget.attempts, "Most candidates to judge, without variants")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--variants", generate.budget.variants,
                   "Most variants of each verified program that leaves numbers open, as `BLOCK = 64  # tune: 32, 128`")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--minutes", generate.budget.minutes, "Longest time for all of them")
      ->check(number_within(0.001, 1e6))
      ->capture_default_str();
  command->add_option("--batch", generate.batch)->group("");  // for `bench run`, which says it
  command->add_flag("!--no-corpus", generate.add_to_corpus, "Do not add the result to the corpus");
  add_exclude_near(*command, generate.exclude_near);
  options->judge.add_to(*command);
  add_scale(*command, session);
  options->certificate.add_to(*command);
  options->llm.add_to(*command, /*with_replay*/ true);
  command->footer("Example:\n  tilepilot generate examples/rms_norm.py -o fast.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_generate(session, *options); }; });
}

}  // namespace tilepilot::cli
