// tilepilot check CANDIDATE.py --reference MODEL.py: correctness, guards and timing of a given program.
#include "agent/check.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

struct Options {
  std::string candidate;
  std::string reference;
  bool no_timing = false;
  int trials = 5;
  double time_limit_s = 60;
  double memory_gib = 0;
  std::string baselines = "eager";
};

int run_check(Session& session, const Options& options) {
  agent::CheckOptions check{
      options.candidate, options.reference, session.environment.cache / "work", session.exporter_options(), {},
      !options.no_timing};
  auto judge = session.judge_options();
  if (!judge) return session.fail(judge.error());
  check.judge = *judge;
  check.judge.trials = options.trials;
  check.judge.time_limit_s = options.time_limit_s;
  check.judge.memory_limit_bytes = static_cast<int64_t>(options.memory_gib * (1 << 30));
  check.judge.baseline_compile = options.baselines == "compile";
  auto verdict = agent::check(session.sources, check);
  if (!verdict) return session.fail(verdict.error());
  for (const std::string& diagnostic : verdict->rendered) session.progress_text(diagnostic);
  session.answer(full_text(*verdict));
  nlohmann::json object = eval::to_json(*verdict);
  object["ok"] = verdict->outcome == eval::Outcome::verified;
  session.finish(object);
  if (verdict->outcome == eval::Outcome::worker_failed) return kMissing;
  return verdict->outcome == eval::Outcome::verified ? kDone : kNotVerified;
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("check", "Judge a given program against a model: correctness, guards, timing");
  command->add_option("candidate", options->candidate, "Python file with class ModelNew")->required();
  command
      ->add_option("-r,--reference", options->reference,
                   "Python file with class Model, get_inputs() and get_init_inputs()")
      ->required();
  command->add_flag("--no-timing", options->no_timing, "Correctness and guards only");
  command->add_option("--trials", options->trials, "Trials with fresh inputs and weights")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--time-limit", options->time_limit_s, "Seconds for all trials of the candidate")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--memory", options->memory_gib,
                      "Memory of the candidate in GiB (default: three quarters of the machine)");
  command->add_option("--baselines", options->baselines, "eager, or compile: time torch.compile too (slow on a CPU)")
      ->check(CLI::IsMember({"eager", "compile"}))
      ->capture_default_str();
  command->footer("Example:\n  tilepilot check fast.py --reference examples/rms_norm.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_check(session, *options); }; });
}

}  // namespace tilepilot::cli
