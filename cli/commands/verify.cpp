// tilepilot verify CERT: repeats a certificate here and says what differs.
#include "agent/verify.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "cli/verdict_text.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct VerifyFlags {
  std::string certificate;
  bool no_timing = false;
  bool allow_foreign = false;
};

std::string in_words(const agent::Verification& verification) {
  std::string text = verification.holds() ? "holds here: " : "does not hold here: ";
  text += one_line(verification.fresh);
  if (verification.repeated) text += "\n  with its seed  " + one_line(*verification.repeated);
  for (const agent::Difference& each : verification.differences)
    text += fmt::format("\n  {:<14} {}: {} certified, {} here", each.matters ? "CHANGED" : "differs", each.what,
                        each.certified, each.here);
  return text;
}

json as_json(const agent::Verification& verification) {
  json object = {
      {"ok", verification.holds()}, {"fresh", eval::to_json(verification.fresh)}, {"differences", json::array()}};
  if (verification.repeated) object["repeated"] = eval::to_json(*verification.repeated);
  for (const agent::Difference& each : verification.differences)
    object["differences"].push_back(
        {{"what", each.what}, {"certified", each.certified}, {"here", each.here}, {"matters", each.matters}});
  return object;
}

int run_verify(Session& session, const VerifyFlags& options) {
  if (auto status = session.refuse_unused("verify", {"--seed", "--dtype", "--threads"}); !status)
    return session.fail(status.error());
  auto judge = session.judge_options();
  if (!judge) return session.fail(judge.error());
  judge->allow_foreign = options.allow_foreign;
  agent::VerifyOptions verify{options.certificate,
                              session.work_folder(),
                              session.exporter_options(),
                              *judge,
                              !options.no_timing,
                              version_text(session.environment),
                              {}};
  verify.progress = [&session](const std::string& line) { session.progress(line); };
  auto verification = agent::verify(session.sources, verify);
  if (!verification) return session.fail(verification.error());
  session.answer(fmt::format("{} {}", options.certificate, in_words(*verification)));
  session.finish(as_json(*verification));
  const bool lost = verification->fresh.outcome == eval::Outcome::worker_failed;
  return lost ? kMissing : verification->holds() ? kDone : kNotVerified;
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto options = std::make_shared<VerifyFlags>();
  auto* command = app.add_subcommand("verify", "Repeat a certificate here, and say what differs");
  command->add_option("certificate", options->certificate, "The .cert.json that generate or check wrote")
      ->type_name("FILE")
      ->required();
  command->add_flag("--no-timing", options->no_timing, "Correctness and guards only");
  // Not taken from the certificate: whoever made it is not who decides that.
  command->add_flag("--allow-foreign", options->allow_foreign, "Judge a program that brings device source of its own");
  command->footer(
      "The program and the model are judged as the certificate says, with its seed and with a fresh one. Exit codes:\n"
      "0 it holds, 1 the program, the model or the outcome is another, 2 no certificate, or an edited one, 3 "
      "something\n"
      "needed is missing here. A certificate is no signature: it shows edits, not who made it.\n"
      "Example:\n  tilepilot verify fast.cert.json");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_verify(session, *options); }; });
}

}  // namespace tilepilot::cli
