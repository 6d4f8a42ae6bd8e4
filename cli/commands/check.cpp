// tilepilot check CANDIDATE.py --reference MODEL.py: correctness, guards and timing of a given program.
#include "agent/check.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/flags/certificate_flags.h"
#include "cli/flags/judge_flags.h"
#include "cli/verdict_text.h"
#include "eval/profile/profile_text.h"

namespace tilepilot::cli {
namespace {

struct CheckFlags {
  std::string candidate;
  std::string reference;
  bool no_timing = false;
  bool profile = false;
  bool allow_foreign = false;
  JudgeFlags judge;
  CertificateFlags certificate;
};

// A profile is made of times.
Status check_profile(const CheckFlags& options, const std::string& target) {
  if (!options.profile) return {};
  if (options.no_timing)
    return make_error(DiagnosticKind::bad_usage, {}, "`--profile` measures, and `--no-timing` forbids it",
                      "leave one of them out");
  if (target.starts_with("emulate"))
    return make_error(DiagnosticKind::bad_usage, {}, "`--profile` measures times, which tell nothing in the emulator",
                      "`tilepilot profile FILE --call ...` counts there what launches cost");
  return {};
}

int run_check(Session& session, const CheckFlags& options) {
  agent::CheckOptions check{.candidate = options.candidate,
                            .model = options.reference,
                            .work = session.work_folder(),
                            .exporter = session.exporter_options(),
                            .judge = {},
                            .time = !options.no_timing,
                            .progress = [&session](const std::string& line) { session.progress(line); }};
  if (auto writable = options.certificate.probe(); !writable) return session.fail(writable.error());
  auto judge = session.judge_options();
  if (!judge) return session.fail(judge.error());
  if (auto status = check_profile(options, judge->target); !status) return session.fail(status.error());
  check.judge = *judge;
  check.profile = options.profile;
  check.judge.allow_foreign = options.allow_foreign;
  check.time = check.time && !judge->target.starts_with("emulate");  // times there tell nothing
  options.judge.apply_to(check.judge);
  auto checked = agent::check(session.sources, check);
  if (!checked) return session.fail(checked.error());
  const eval::Verdict& verdict = checked->verdict;
  for (const std::string& diagnostic : verdict.rendered) session.show_diagnostics(diagnostic);
  session.answer(full_text(verdict));
  if (verdict.profile) session.answer(eval::profile_text(*verdict.profile));
  nlohmann::json object = verdict_json(verdict, checked->source);
  object["ok"] = verdict.outcome == eval::Outcome::verified;
  // Beside the place where it was asked for: the program's own folder may be anybody's.
  const auto beside = agent::certificate_path(checked->program.filename());
  if (verdict.outcome == eval::Outcome::verified) options.certificate.write(session, beside, *checked, object);
  session.finish(object);
  if (verdict.outcome == eval::Outcome::worker_failed) return kMissing;
  return verdict.outcome == eval::Outcome::verified ? kDone : kNotVerified;
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  auto options = std::make_shared<CheckFlags>();
  auto* command = app.add_subcommand("check", "Judge a given program against a model: correctness, guards, timing");
  command->add_option("candidate", options->candidate, "Python file with class ModelNew")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-r,--reference", options->reference,
                   "Python file with class Model, get_inputs() and get_init_inputs()")
      ->type_name("FILE")
      ->required();
  command->add_flag("--no-timing", options->no_timing, "Correctness and guards only");
  command->add_flag("--profile", options->profile,
                    "Tell where a verified program's time goes, by kernel and by operator of ATen (docs/profiling.md)");
  command->add_flag("--allow-foreign", options->allow_foreign,
                    "Admit device source that the program brings along; the verdict says so");
  options->judge.add_to(*command);
  add_scale(*command, session);
  options->certificate.add_to(*command);
  command->footer("Example:\n  tilepilot check fast.py --reference examples/rms_norm.py");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_check(session, *options); }; });
}

}  // namespace tilepilot::cli
