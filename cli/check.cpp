// tilepilot check CANDIDATE.py --reference MODEL.py: correctness, guards and timing of a given program.
#include "agent/check.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/judge_flags.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

struct CheckFlags {
  std::string candidate;
  std::string reference;
  bool no_timing = false;
  JudgeFlags judge;
};

int run_check(Session& session, const CheckFlags& options) {
  agent::CheckOptions check{options.candidate, options.reference, session.work_folder(), session.exporter_options(), {},
                            !options.no_timing};
  auto judge = session.judge_options();
  if (!judge) return session.fail(judge.error());
  check.judge = *judge;
  check.time = check.time && !judge->target.starts_with("emulate");  // times there tell nothing
  options.judge.apply_to(check.judge);
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
  auto options = std::make_shared<CheckFlags>();
  auto* command = app.add_subcommand("check", "Judge a given program against a model: correctness, guards, timing");
  command->add_option("candidate", options->candidate, "Python file with class ModelNew")->required();
  command
      ->add_option("-r,--reference", options->reference,
                   "Python file with class Model, get_inputs() and get_init_inputs()")
      ->required();
  command->add_flag("--no-timing", options->no_timing, "Correctness and guards only");
  options->judge.add_to(*command);
  command->footer("Example:\n  tilepilot check fast.py --reference examples/rms_norm.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_check(session, *options); }; });
}

}  // namespace tilepilot::cli
