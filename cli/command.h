// What all commands share: the options that work everywhere, and how results, progress and errors are shown. A command
// is a function that adds itself to the parser and stores what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/exporter.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "compiler/diagnostics/result.h"
#include "eval/judge.h"

namespace tilepilot::cli {

// Process exit codes, the same for every command.
enum ExitCode : int {
  kDone = 0,         // done and verified
  kNotVerified = 1,  // ran, but the user's program is not verified or does not compile
  kBadInput = 2,     // bad usage or input
  kMissing = 3,      // something needed is missing here
};
// The exit code that an error of this kind ends a command with.
ExitCode exit_code(DiagnosticKind kind);

struct CommonOptions {
  bool json = false;
  bool with_text = false;  // with `json`: the object holds under `text` what is said without it
  bool quiet = false;
  std::string dtype = "model";
  std::string target = "auto";
  std::optional<uint64_t> seed;
  std::string store;
  std::string python;
  std::string scale;  // of commands that export a model
  int threads = 0;
};

class Session {
 public:
  explicit Session(Environment environment) : environment(std::move(environment)) {}

  // A progress line on standard error, unless --quiet.
  void progress(const std::string& line) const;
  // Text that ends its own lines, where a progress line would go.
  void progress_text(const std::string& text) const;
  // The same, of rendered diagnostics that belong to the answer.
  void show_diagnostics(const std::string& text) const;
  // A line of the answer on standard output, unless --json; on standard error where standard output is a result's.
  void answer(const std::string& line) const;
  // The one JSON object on standard output, if --json.
  void finish(const nlohmann::json& object) const;
  // A text is all of the answer; `text` in the JSON object. Gives the exit code.
  int finish_text(std::string text) const;
  // Prints errors on standard error, --quiet or not, and gives them for the JSON object.
  nlohmann::json explain(const Diagnostic& error) const;
  nlohmann::json explain(const DiagnosticList& errors) const;
  // Explains, finishes with a JSON object that holds nothing else, and gives the exit code.
  int fail(const Diagnostic& error) const;
  int fail(const DiagnosticList& errors) const;

  std::filesystem::path store_file() const;
  std::filesystem::path work_folder() const;  // where runs keep their temporary folders
  // Where this program and what it starts may leave temporary folders if they are killed.
  std::vector<std::filesystem::path> temporary_folders() const;
  std::string python() const;
  // Errors: a target that this version does not have.
  Result<eval::JudgeOptions> judge_options() const;
  agent::ExporterOptions exporter_options() const;
  // Where candidates are judged. Errors: what is no target.
  Result<std::string> target() const;
  // That the database has no such run of `generate`.
  Diagnostic no_run(int64_t run) const;
  // What code can be printed for, whatever this machine has.
  Result<std::string> compile_target() const;

  // The file that the user names for a result: `-` is standard output, which then holds nothing else. Errors: `--json`
  // goes there, too.
  Result<std::filesystem::path> output_file(const std::filesystem::path& named);
  Status write_output(const std::filesystem::path& named, const std::string& text);

  // Tells a worker that is started from now on how many threads it has.
  void limit_worker_threads() const;
  // The worker takes this process's place, so that its output appears as it is written. Comes back only with the exit
  // code of a failure. `argv` begins with the worker itself.
  int become_worker(std::vector<std::string> argv) const;

  // Errors: an option that works elsewhere was given to a command that has no use for it.
  Status refuse_unused(std::string_view command, std::initializer_list<std::string_view> options) const;

  Environment environment;
  CommonOptions common;
  SourceMap sources;
  std::vector<std::string> script_arguments;  // of `run`: what stands behind the script's name
  std::function<int()> run;                   // set by the chosen command
  bool output_is_taken = false;               // standard output holds the result, as with `-o /dev/stdout`
  LastWords last_words;                       // what the command does when a signal ends it

 private:
  void note(const std::string& text) const;

  mutable std::mutex said_mutex_;  // a signal's last words come from another thread
  mutable std::string said_;       // for `with_text`
};

// `--scale`, for commands that export a model.
void add_scale(CLI::App& command, Session& session);
// `--exclude-near`, for commands whose author is shown entries of the corpus.
void add_exclude_near(CLI::App& command, double& distance);

void add_generate(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_run(CLI::App& app, Session& session);
void add_compile(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_profile(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_show(CLI::App& app, Session& session);
void add_corpus(CLI::App& app, Session& session);
void add_runs(CLI::App& app, Session& session);
void add_prompt(CLI::App& app, Session& session);
void add_trace(CLI::App& app, Session& session);
void add_llm(CLI::App& app, Session& session);
void add_mcp(CLI::App& app, Session& session);
void add_language(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);
void add_man(CLI::App& app, Session& session);
void add_problem(CLI::App& app, Session& session);
void add_attack(CLI::App& app, Session& session);
void add_bench(CLI::App& app, Session& session);

}  // namespace tilepilot::cli
