// tilepilot generate MODEL.py: the main job.
#include "agent/generate.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/judge_flags.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct GenerateFlags {
  std::string model;
  std::string output;
  agent::GenerateOptions generate;
  JudgeFlags judge;
  const CLI::Option* dollars = nullptr;
  std::vector<const CLI::Option*> llm_only;
};

std::string conclusion(const GenerateFlags& options, const agent::GenerateResult& result) {
  const agent::Attempt* best = result.best();
  if (!best && result.outcome.attempts.empty() && result.outcome.ending == agent::Ending::nothing_left)
    return "no program: the author sees nothing in this model that a kernel could compute faster than PyTorch";
  if (!best)
    return fmt::format("no verified program after {} attempts ({})", result.outcome.attempts.size(),
                       agent::to_string(result.outcome.ending));
  const eval::Verdict& verdict = best->verdict;
  std::string text = fmt::format("{}: {}, {:.2f}x of PyTorch eager", options.generate.output.string(),
                                 state_of(verdict), verdict.speedup());
  if (verdict.candidate && verdict.eager)
    text += fmt::format(" ({:.1f} us, quartiles {:.1f} to {:.1f}, against {:.1f} us)", verdict.candidate->median_us,
                        verdict.candidate->low_us, verdict.candidate->high_us, verdict.eager->median_us);
  if (verdict.compiled) text += fmt::format("; torch.compile takes {:.1f} us", verdict.compiled->median_us);
  for (const std::string& note : verdict.notes) text += "\nnote: " + note;
  if (verdict.speedup() < 1) text += "\nnothing tried beats eager; this is the best verified program";
  return text;
}

json as_json(const GenerateFlags& options, const agent::GenerateResult& result) {
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
  events.loop.on_confirmed = [&session](int number, const agent::Attempt& attempt) {
    session.progress(fmt::format("attempt {} once more: {}", number + 1, one_line(attempt.verdict)));
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
  auto unwritable = [&](const char* why) {
    return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", output.string(), why),
                      "give `-o` a file that can be written");
  };
  if (std::filesystem::is_directory(output, error)) return unwritable("it is a folder");
  std::string beside = (output.parent_path() / ".tilepilot-XXXXXX").string();
  const int descriptor = mkstemp(beside.data());
  if (descriptor < 0) return unwritable(std::strerror(errno));
  close(descriptor);
  unlink(beside.c_str());
  return {};
}

// Options that only the language model listens to are not dropped in silence.
Status check_author(const Session& session, const GenerateFlags& options) {
  const agent::GenerateOptions& generate = options.generate;
  auto given = [](const CLI::Option* option) { return option->count() > 0; };
  if (generate.author != "llm") {
    auto found = std::find_if(options.llm_only.begin(), options.llm_only.end(), given);
    if (found == options.llm_only.end()) return {};
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` has no meaning for the author `{}`", (*found)->get_name(), generate.author),
                      "add `--author llm`");
  }
  if (generate.replay) return {};
  if (generate.chat.url.empty() || generate.chat.settings.model.empty())
    return make_error(DiagnosticKind::bad_usage, {}, "`--author llm` needs `--llm-url` and `--llm-model`",
                      "for example `--llm-url http://localhost:8000/v1 --llm-model NAME`");
  const bool priced = generate.chat.dollars_per_million_input > 0 || generate.chat.dollars_per_million_output > 0;
  if (given(options.dollars) && !priced)
    session.progress("warning: `--dollars` limits nothing without `--price-in` and `--price-out`");
  return {};
}

Status complete(Session& session, GenerateFlags& options) {
  agent::GenerateOptions& generate = options.generate;
  TRY(check_author(session, options));
  generate.model = options.model;
  generate.output = options.output.empty() ? std::filesystem::path(generate.model.stem().string() + "_tilepilot.py")
                                           : std::filesystem::path(options.output);
  TRY(probe_output(generate.output, generate.model));
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
  generate.chat.key = session.environment.api_key;
  return {};
}

int run_generate(Session& session, GenerateFlags& options) {
  if (auto status = complete(session, options); !status) return session.fail(status.error());
  auto result = agent::generate(session.sources, options.generate, progress_of(session));
  if (!result) return session.fail(result.error());
  const agent::RunOutcome& outcome = result->outcome;
  session.answer(conclusion(options, *result));
  json object = as_json(options, *result);
  if (outcome.failure) object["errors"] = session.explain(*outcome.failure);
  session.finish(object);
  if (result->written) return kDone;
  if (outcome.failure) return exit_code(outcome.failure->kind);
  return outcome.ending == agent::Ending::worker_failed ? kMissing : kNotVerified;
}

void add_llm_options(CLI::App& command, GenerateFlags& options) {
  agent::ChatOptions& chat = options.generate.chat;
  auto add = [&](const char* name, auto& value, const char* help) {
    CLI::Option* option = command.add_option(name, value, help)->group("Language model");
    options.llm_only.push_back(option);
    return option;
  };
  add("--llm-url", chat.url,
      "Base URL of an OpenAI-form chat endpoint, up to and including /v1; the key comes from TILEPILOT_API_KEY");
  add("--llm-model", chat.settings.model, "Model name at that endpoint");
  add("--llm-temperature", chat.settings.temperature, "Sampling temperature (default: the endpoint's)");
  add("--llm-max-tokens", chat.settings.max_output_tokens, "Longest answer, in tokens")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add("--price-in", chat.dollars_per_million_input, "Dollars a million input tokens, for the budget")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add("--price-out", chat.dollars_per_million_output, "Dollars a million output tokens, for the budget")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  options.dollars =
      add("--dollars", options.generate.budget.dollars, "Most money for the language model, by the prices above")
          ->check(CLI::NonNegativeNumber)
          ->capture_default_str();
  add("--replay", options.generate.replay, "Take the model's answers from this earlier run instead of the network");
}

}  // namespace

void add_generate(CLI::App& app, Session& session) {
  auto options = std::make_shared<GenerateFlags>();
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
  command->add_flag("!--no-corpus", generate.add_to_corpus, "Do not add the result to the corpus");
  options->judge.add_to(*command);
  add_llm_options(*command, *options);
  command->footer("Example:\n  tilepilot generate examples/rms_norm.py -o fast.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_generate(session, *options); }; });
}

}  // namespace tilepilot::cli
