// tilepilot profile FILE --call "...": where the time of a kernel's call goes, in the worker.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "compiler/runtime/target.h"

namespace tilepilot::cli {
namespace {

struct ProfileFlags {
  std::string file;
  std::string call;
  double bench_time = 500;
};

int run_profile(Session& session, const ProfileFlags& options) {
  auto target = runtime::parse_target(session.common.target);
  if (!target) return session.fail(target.error());
  if (auto status = session.refuse_unused("profile", {"--seed", "--dtype"}); !status)
    return session.fail(status.error());
  session.limit_worker_threads();
  return session.become_worker({session.environment.worker.string(), "profile", runtime::to_string(*target),
                                fmt::format("{}", options.bench_time), options.file, options.call,
                                !session.common.json       ? "text"
                                : session.common.with_text ? "both"
                                                           : "json"});
}

}  // namespace

void add_profile(CLI::App& app, Session& session) {
  auto options = std::make_shared<ProfileFlags>();
  auto* command = app.add_subcommand("profile", "Tell where the time of a kernel's call goes");
  command->add_option("file", options->file, "Python file with the kernel")->type_name("FILE")->required();
  command
      ->add_option("--call", options->call,
                   "What to watch, an expression in the file: \"matmul(1024, 1024, 1024)\". A kernel gets inputs of "
                   "its own; any other call is watched as it is")
      ->required();
  command
      ->add_option("--bench-time", options->bench_time,
                   "Most milliseconds for the calls; there are at least two, in the emulator one")
      ->check(number_within(0, 1e9))
      ->capture_default_str();
  command->footer(
      "On a processor or a GPU: times by kernel and by operator of ATen, against the roofline. In the emulator: what\n"
      "launches cost, in instructions, bytes, bank conflicts and sectors, with lines (docs/profiling.md).\n"
      "Examples:\n"
      "  tilepilot profile examples/scripts/matmul.py --call \"matmul(512, 512, 512)\"\n"
      "  tilepilot profile examples/scripts/matmul.py --call \"matmul(64, 64, 64)\" --target emulate:sm_90a");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_profile(session, *options); }; });
}

}  // namespace tilepilot::cli
