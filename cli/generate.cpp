// tilepilot generate MODEL.py: the main job.
#include "agent/generate.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string model;
  std::string output;
  agent::GenerateOptions generate;
  std::string baselines = "eager";
};

std::string conclusion(const Options& options, const agent::GenerateResult& result) {
  const agent::Attempt* best = result.best();
  if (!best)
    return fmt::format("no verified program after {} attempts ({})", result.outcome.attempts.size(),
                       agent::to_string(result.outcome.ending));
  const eval::Verdict& verdict = best->verdict;
  std::string text =
      fmt::format("{}: verified, {:.2f}x of PyTorch eager", options.generate.output.string(), verdict.speedup());
  if (verdict.candidate && verdict.eager)
    text += fmt::format(" ({:.1f} us, quartiles {:.1f} to {:.1f}, against {:.1f} us)", verdict.candidate->median_us,
                        verdict.candidate->low_us, verdict.candidate->high_us, verdict.eager->median_us);
  if (verdict.compiled) text += fmt::format("; torch.compile takes {:.1f} us", verdict.compiled->median_us);
  if (verdict.speedup() < 1) text += "\nnothing tried beats eager; this is the best verified program";
  return text;
}

json as_json(const Options& options, const agent::GenerateResult& result) {
  json object = {{"ok", result.written},
                 {"model", options.model},
                 {"run", result.run},
                 {"ending", agent::to_string(result.outcome.ending)},
                 {"seconds", result.outcome.seconds},
                 {"added_to_corpus", result.added_to_corpus},
                 {"attempts", json::array()}};
  for (const agent::Attempt& attempt : result.outcome.attempts)
    object["attempts"].push_back({{"summary", attempt.candidate.summary}, {"verdict", eval::to_json(attempt.verdict)}});
  if (const agent::Attempt* best = result.best()) {
    object["output"] = options.generate.output.string();
    object["best_attempt"] = *result.outcome.best;
    object["speedup"] = best->verdict.speedup();
  }
  if (result.outcome.failure) object["failure"] = result.outcome.failure->message;
  return object;
}

agent::GenerateEvents progress_of(const Session& session) {
  agent::GenerateEvents events;
  events.progress = [&session](const std::string& line) { session.progress(line); };
  events.loop.on_candidate = [&session](int number, const agent::Candidate& candidate) {
    session.progress(fmt::format("attempt {}: {}", number + 1, candidate.summary));
  };
  events.loop.on_attempt = [&session](int number, const agent::Attempt& attempt) {
    session.progress(fmt::format("attempt {}: {}", number + 1, one_line(attempt.verdict)));
    for (const std::string& diagnostic : attempt.verdict.rendered) session.progress_text(diagnostic);
  };
  return events;
}

Status complete(Session& session, Options& options) {
  agent::GenerateOptions& generate = options.generate;
  generate.model = options.model;
  generate.output = options.output.empty() ? std::filesystem::path(generate.model.stem().string() + "_tilepilot.py")
                                           : std::filesystem::path(options.output);
  generate.judge = TRY(session.judge_options());
  generate.judge.baseline_compile = options.baselines == "compile";
  generate.exporter = session.exporter_options();
  generate.store = session.store_file();
  generate.work = session.environment.cache / "work";
  generate.seeds = session.environment.root / "seeds";
  generate.chat.key = session.environment.api_key;
  if (generate.author == "llm" && !generate.replay &&
      (generate.chat.url.empty() || generate.chat.settings.model.empty()))
    return make_error(DiagnosticKind::bad_usage, {}, "`--author llm` needs `--llm-url` and `--llm-model`",
                      "for example `--llm-url http://localhost:8000/v1 --llm-model NAME`");
  return {};
}

int run_generate(Session& session, Options& options) {
  if (auto status = complete(session, options); !status) return session.fail(status.error());
  auto result = agent::generate(session.sources, options.generate, progress_of(session));
  if (!result) return session.fail(result.error());
  session.answer(conclusion(options, *result));
  session.finish(as_json(options, *result));
  if (result->written) return kDone;
  if (result->outcome.failure) {
    session.progress("error: " + result->outcome.failure->message);
    if (!result->outcome.failure->hint.empty()) session.progress("hint: " + result->outcome.failure->hint);
    return kMissing;
  }
  return result->outcome.ending == agent::Ending::worker_failed ? kMissing : kNotVerified;
}

void add_llm_options(CLI::App& command, agent::GenerateOptions& generate) {
  const std::string group = "Language model";
  command
      .add_option(
          "--llm-url", generate.chat.url,
          "Base URL of an OpenAI-form chat endpoint, up to and including /v1; the key comes from TILEPILOT_API_KEY")
      ->group(group);
  command.add_option("--llm-model", generate.chat.settings.model, "Model name at that endpoint")->group(group);
  command
      .add_option("--llm-temperature", generate.chat.settings.temperature,
                  "Sampling temperature (default: the endpoint's)")
      ->group(group);
  command.add_option("--llm-max-tokens", generate.chat.settings.max_output_tokens, "Longest answer, in tokens")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--price-in", generate.chat.dollars_per_million_input,
                  "Dollars a million input tokens, for the budget")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--price-out", generate.chat.dollars_per_million_output,
                  "Dollars a million output tokens, for the budget")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--replay", generate.replay, "Take the model's answers from this earlier run instead of the network")
      ->group(group);
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("generate", "Write a faster, verified program for a PyTorch model");
  agent::GenerateOptions& generate = options->generate;
  command->add_option("model", options->model, "Python file with class Model, get_inputs() and get_init_inputs()")
      ->required();
  command->add_option("-o,--output", options->output,
                      "Where the program goes (default: MODEL_tilepilot.py in this folder)");
  command
      ->add_option("--author", generate.author,
                   "Who writes candidates: builtin plans from the op graph, llm asks a language model")
      ->check(CLI::IsMember({"builtin", "llm"}))
      ->capture_default_str();
  command->add_option("--attempts", generate.budget.attempts, "Most candidates to judge")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--minutes", generate.budget.minutes, "Longest time for all of them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--dollars", generate.budget.dollars, "Most money for the language model")->capture_default_str();
  command->add_option("--baselines", options->baselines, "eager, or compile: time torch.compile too (slow on a CPU)")
      ->check(CLI::IsMember({"eager", "compile"}))
      ->capture_default_str();
  command->add_flag("!--no-corpus", generate.add_to_corpus, "Do not add the result to the corpus");
  add_llm_options(*command, generate);
  command->footer("Example:\n  tilepilot generate examples/rms_norm.py -o fast.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_generate(session, *options); }; });
}

}  // namespace tilepilot::cli
