// tilepilot tune FILE --call "...": finds the fastest configuration of a kernel in the worker.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "compiler/runtime/target.h"

namespace tilepilot::cli {
namespace {

struct TuneFlags {
  std::string file;
  std::string call;
  int limit = 12;
  double time_limit = 60;
  double bench_time = 125;
};

int run_tune(Session& session, const TuneFlags& options) {
  auto target = runtime::parse_target(session.common.target);
  if (!target) return session.fail(target.error());
  if (auto status = session.refuse_unused("tune", {"--seed", "--dtype"}); !status) return session.fail(status.error());
  session.limit_worker_threads();
  return session.become_worker({session.environment.worker.string(), "tune", runtime::to_string(*target),
                                fmt::format("{}", options.bench_time), std::to_string(options.limit),
                                fmt::format("{}", options.time_limit), options.file, options.call,
                                session.common.json ? "json" : "table", session.common.quiet ? "quiet" : "verbose"});
}

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  auto options = std::make_shared<TuneFlags>();
  auto* command = app.add_subcommand("tune", "Find the fastest configuration of a kernel");
  command->add_option("file", options->file, "Python file with the kernel")->type_name("FILE")->required();
  command
      ->add_option("--call", options->call,
                   "A call of a function in the file that leaves tile sizes open: \"matmul(1024, 1024, 1024)\"")
      ->required();
  command->add_option("--limit", options->limit, "Most configurations that are tried")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--time-limit", options->time_limit,
                   "Most seconds that one configuration may run before it is left out")
      ->check(number_within(0.001, 1e6))
      ->capture_default_str();
  command
      ->add_option("--bench-time", options->bench_time,
                   "Most milliseconds for the calls of one configuration; 0: one call")
      ->check(number_within(0, 1e9))
      ->capture_default_str();
  command->footer(
      "A function with `@tilelang.autotune` brings its configurations, and `tilepilot run` uses what was found. Of\n"
      "another one the parameters block_M, block_N, block_K, num_stages and threads are varied; what is found is "
      "printed,\n"
      "to be written into the program. For a GPU a model of the hardware says which configurations are tried.\n"
      "Example:\n"
      "  tilepilot tune examples/scripts/matmul.py --call \"matmul(512, 512, 512)\"");
  command->callback([&session, options] { session.run = [&session, options] { return run_tune(session, *options); }; });
}

}  // namespace tilepilot::cli
