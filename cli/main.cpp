// `tilepilot`: parses the command line and runs one command.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/command.h"
#include "cli/flags/script_arguments.h"
#include "cli/folder_guard.h"
#include "cli/manual/help.h"
#include "compiler/runtime/target.h"

namespace {

void add_common_options(CLI::App& app, tilepilot::cli::CommonOptions& common) {
  app.add_flag("--json", common.json, "Print one JSON object on standard output and nothing else there");
  app.add_flag("--with-text", common.with_text)->group("");  // for `mcp`, which says it
  app.add_flag("--quiet,-q", common.quiet, "No progress lines on standard error");
  app.add_option("--dtype", common.dtype, "Element type that model and candidate run in")
      ->check(CLI::IsMember({"model", "fp32", "fp16", "bf16"}))
      ->capture_default_str();
  app.add_option("--target", common.target, "Where kernels run")
      ->check(tilepilot::cli::named_choices(tilepilot::runtime::target_names()))
      ->capture_default_str();
  app.add_option("--seed", common.seed, "Seed of the trials (default: secret, new each time)");
  app.add_option("--threads", common.threads, "CPU threads for model and candidate (default: as many as PyTorch takes)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--store", common.store,
                 "Database of corpus and runs (default: $TILEPILOT_STORE, else your data folder)")
      ->type_name("FILE");
  app.add_option("--python", common.python,
                 "Interpreter with PyTorch that exports the model (default: the one of this build)")
      ->type_name("FILE");
}

// CLI11 keeps the constructor of its own errors to itself.
class UnknownCommand : public CLI::ParseError {
 public:
  explicit UnknownCommand(std::string message)
      : ParseError("UnknownCommand", std::move(message), CLI::ExitCodes::ExtrasError) {}
};

}  // namespace

int main(int argc, char** argv) {
  using namespace tilepilot::cli;
  Session session(read_environment());
  CLI::App app(
      "TilePilot turns a PyTorch model into a faster program in TileLang syntax, verified and timed against the "
      "original.");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(
      "Start here:\n"
      "  tilepilot generate examples/rms_norm.py\n"
      "Exit codes: 0 done and verified, 1 ran but not verified or not compiled, 2 bad usage or input,\n"
      "3 something needed is missing here (see `tilepilot doctor`). A signal ends a command as it ends others (130 "
      "after\n"
      "Ctrl-C in a shell); `generate` then writes the best verified program so far.");
  app.set_version_flag("--version", version_text(session.environment));
  add_common_options(app, session.common);
  for (auto add :
       {add_generate, add_check,    add_verify, add_run,     add_compile,    add_tune,   add_profile, add_show,
        add_export,   add_corpus,   add_runs,   add_problem, add_bench,      add_attack, add_prompt,  add_trace,
        add_llm,      add_language, add_mcp,    add_doctor,  add_completion, add_man})
    add(app, session);
  add_common_help(app);
  const int own = count_own_arguments(app, argc, argv);
  session.script_arguments = script_arguments(own, argc, argv);
  try {
    if (std::string unknown = unknown_command(app, own, argv); !unknown.empty()) throw UnknownCommand(unknown);
    app.parse(own, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kDone;  // --help
    const auto given = [&](std::string_view flag) { return std::find(argv, argv + own, flag) != argv + own; };
    session.common.json = given("--json");
    session.common.with_text = given("--with-text");
    if (session.common.json) session.answer(error.what());
    session.finish(
        {{"ok", false}, {"errors", {{{"kind", "bad_usage"}, {"severity", "error"}, {"message", error.what()}}}}});
    return kBadInput;
  }
  const FolderGuard guard(session.temporary_folders());  // before there are threads
  InterruptWatch watch(session.work_folder(), session.last_words);
  return session.run();
}
