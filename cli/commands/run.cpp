// tilepilot run SCRIPT.py [ARGUMENTS...]: runs a TileLang script in the worker.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/target.h"

namespace tilepilot::cli {
namespace {

struct RunFlags {
  std::string script;
  double bench_time = 125;
  int autotune_limit = 0;
  std::string report;
  bool costs = false;
};

int run_script(Session& session, const RunFlags& options) {
  auto target = runtime::parse_target(session.common.target);
  if (!target) return session.fail(target.error());
  if (options.costs && target->place != runtime::Place::emulator)
    return session.fail({DiagnosticKind::bad_usage,
                         {},
                         "`--costs` is for runs in the emulator, which counts",
                         {},
                         "add `--target emulate:sm_90a`, or leave it out"});
  std::vector<std::string> argv = {
      session.environment.worker.string(),    "run",          fmt::format("{}", options.bench_time),
      std::to_string(options.autotune_limit), options.report, runtime::to_string(*target),
      options.costs ? "costs" : "",           options.script};
  argv.insert(argv.end(), session.script_arguments.begin(), session.script_arguments.end());
  if (auto status = session.refuse_unused("run", {"--seed", "--dtype"}); !status) return session.fail(status.error());
  session.limit_worker_threads();
  if (session.common.json) {
    auto ran = runtime::run_process(argv);
    if (!ran) return session.fail(ran.error());
    session.finish({{"ok", ran->exit_code == 0},
                    {"exit_code", ran->exit_code},
                    {"signal", ran->signal},
                    {"output", ran->out},
                    {"messages", ran->err}});
    return ran->exit_code >= 0 ? ran->exit_code : kNotVerified;
  }
  return session.become_worker(std::move(argv));
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto options = std::make_shared<RunFlags>();
  auto* command = app.add_subcommand("run", "Run a TileLang script, its main() included");
  command->add_option("script", options->script, "Python file; what stands behind it are its own arguments")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--bench-time", options->bench_time, "Most milliseconds for the calls of one benchmark; 0: one call")
      ->check(number_within(0, 1e9))
      ->capture_default_str();
  command
      ->add_option("--autotune-limit", options->autotune_limit,
                   "Most configurations that one tuning tries (default: 4, on a GPU 16)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--report", options->report,
                   "File to write to how far the script came, and what it cost in the emulator, as JSON")
      ->type_name("FILE");
  command->add_flag("--costs", options->costs,
                    "In the emulator: tell at the end what kernels cost, in instructions, operations by class, bytes, "
                    "bank conflicts and sectors, with lines");
  command->footer("Options of ours go before the script.\nExample:\n  tilepilot run --threads 2 my_kernel.py --m 1024");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_script(session, *options); }; });
}

}  // namespace tilepilot::cli
