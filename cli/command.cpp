#include "cli/command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/manual/help.h"
#include "compiler/diagnostics/render.h"
#include "compiler/runtime/target.h"
#include "compiler/source/file.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::cli {

using nlohmann::json;

ExitCode exit_code(DiagnosticKind kind) {
  switch (kind) {
    case DiagnosticKind::compiler_missing:
    case DiagnosticKind::nvrtc_missing:
    case DiagnosticKind::driver_missing:
    case DiagnosticKind::worker_unavailable:
    case DiagnosticKind::not_installed:
    case DiagnosticKind::author_failed:
    case DiagnosticKind::load_failed:
    case DiagnosticKind::cache_unwritable:
    case DiagnosticKind::out_of_memory:
      return kMissing;
    case DiagnosticKind::file_not_found:
    case DiagnosticKind::model_invalid:
    case DiagnosticKind::reference_invalid:
    case DiagnosticKind::store_unusable:
    case DiagnosticKind::output_unwritable:
    case DiagnosticKind::bad_usage:
      return kBadInput;
    default:
      return kNotVerified;
  }
}

void Session::progress(const std::string& line) const {
  if (!common.quiet) fmt::print(stderr, "{}\n", line);
}

void Session::progress_text(const std::string& text) const {
  if (!common.quiet) fmt::print(stderr, "{}", text);
}

void Session::note(const std::string& text) const {
  if (!common.with_text) return;
  std::lock_guard lock(said_mutex_);
  said_ += text;
}

void Session::show_diagnostics(const std::string& text) const {
  progress_text(text);
  note(text);
}

void Session::answer(const std::string& line) const {
  note(line + "\n");
  if (!common.json) fmt::print(output_is_taken ? stderr : stdout, "{}\n", line);
}

int Session::finish_text(std::string text) const {
  while (text.ends_with('\n')) text.pop_back();  // the answer ends its line
  answer(text);
  finish({{"ok", true}, {"text", text}});
  return kDone;
}

void Session::finish(const json& object) const {
  if (!common.json) return;
  json whole = object;
  if (common.with_text && !whole.contains("text")) {
    std::lock_guard lock(said_mutex_);
    whole["text"] = said_;
  }
  fmt::print("{}\n", whole.dump(2, ' ', false, json::error_handler_t::replace));
}

int Session::fail(const Diagnostic& error) const {
  DiagnosticList errors;
  errors.add(error);
  return fail(errors);
}

json Session::explain(const Diagnostic& error) const {
  DiagnosticList errors;
  errors.add(error);
  return explain(errors);
}

json Session::explain(const DiagnosticList& errors) const {
  // Messages may quote what programs, models and files of others hold.
  DiagnosticList shown;
  for (Diagnostic error : errors.items()) {
    error.message = printable(error.message);
    for (Note& note : error.notes) note.message = printable(note.message);
    error.hint = printable(error.hint);
    shown.add(std::move(error));
  }
  fmt::print(stderr, "{}", render(sources, shown, {.color = environment.color}));
  note(render(sources, shown));
  return json::parse(render_json(sources, errors));
}

int Session::fail(const DiagnosticList& errors) const {
  finish({{"ok", false}, {"errors", explain(errors)}});
  for (const Diagnostic& error : errors.items())
    if (error.severity() == Severity::error) return exit_code(error.kind);
  return kNotVerified;
}

namespace {

bool is_standard_output(const std::filesystem::path& output) {
  struct stat named {
  }, ours{}, nowhere{};
  if (stat(output.c_str(), &named) != 0 || fstat(STDOUT_FILENO, &ours) != 0) return false;
  // What goes nowhere cannot be mixed up. std::filesystem::equivalent() throws for devices.
  const bool is_lost = stat("/dev/null", &nowhere) == 0 && S_ISCHR(named.st_mode) && named.st_rdev == nowhere.st_rdev;
  return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino && !is_lost;
}

}  // namespace

Result<std::filesystem::path> Session::output_file(const std::filesystem::path& named) {
  std::filesystem::path file = named == "-" ? "/dev/stdout" : named;
  if (!is_standard_output(file)) return file;
  if (common.json)
    return make_error(DiagnosticKind::bad_usage, {}, "`--json` and the result cannot both go to standard output",
                      "give it a file");
  output_is_taken = true;
  return file;
}

Status Session::write_output(const std::filesystem::path& named, const std::string& text) {
  std::string why;
  if (write_file(TRY(output_file(named)), text, &why)) return {};
  return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", named.string(), why),
                    "give a file that can be written");
}

void Session::limit_worker_threads() const {
  // The OpenMP of LibTorch reads it when the worker starts.
  if (common.threads > 0) setenv("OMP_NUM_THREADS", std::to_string(common.threads).c_str(), 1);
}

int Session::become_worker(std::vector<std::string> argv) const {
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  return fail({DiagnosticKind::worker_unavailable,
               {},
               fmt::format("cannot run `{}`: {}", argv[0], std::strerror(errno)),
               {},
               "run `scripts/setup`"});
}

std::filesystem::path Session::store_file() const {
  return common.store.empty() ? environment.store : std::filesystem::path(common.store);
}

std::filesystem::path Session::work_folder() const { return environment.cache / "work"; }

std::vector<std::filesystem::path> Session::temporary_folders() const {
  std::error_code ignored;
  const auto& cache = environment.cache;
  return {work_folder(), cache / "tmp", cache / "attacks/work", std::filesystem::temp_directory_path(ignored)};
}

std::string Session::python() const { return common.python.empty() ? environment.python : common.python; }

Diagnostic Session::no_run(int64_t run) const {
  return {DiagnosticKind::bad_usage,
          {},
          fmt::format("there is no run {} in `{}`", run, store_file().string()),
          {},
          "`tilepilot runs list` shows them"};
}

Result<std::string> Session::target() const { return runtime::to_string(TRY(runtime::parse_target(common.target))); }

Result<std::string> Session::compile_target() const {
  const runtime::Target target = TRY(runtime::parse_target(common.target));
  switch (target.place) {
    case runtime::Place::automatic:
    case runtime::Place::cpu:
      return std::string("cpu");
    case runtime::Place::emulator:
    case runtime::Place::gpu:
      return "cuda:" + target.architecture;  // the emulator runs the same text
  }
  return std::string("cpu");
}

Status Session::refuse_unused(std::string_view command, std::initializer_list<std::string_view> options) const {
  const std::pair<std::string_view, bool> given[] = {
      {"--seed", common.seed.has_value()}, {"--dtype", common.dtype != "model"}, {"--threads", common.threads != 0}};
  for (const auto& [name, is_given] : given)
    if (is_given && std::find(options.begin(), options.end(), name) != options.end())
      return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` has no use for `{}`", command, name),
                        "leave it out");
  return {};
}

agent::ExporterOptions Session::exporter_options() const {
  agent::ExporterOptions options;
  options.python = python();
  options.script = environment.root / "scripts/export_reference.py";
  options.server = environment.export_server;
  options.dtype = common.dtype;
  options.scale = common.scale;
  return options;
}

namespace {

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// The exporter computes with it as a fraction.
std::string why_no_scale(const std::string& text) {
  const size_t slash = text.find('/');
  const auto over = number_in(std::string_view(text).substr(0, slash));
  const auto under = slash == std::string::npos ? 1.0 : number_in(std::string_view(text).substr(slash + 1));
  const bool fits = over && under && *under > 0 && *over > 0 && *over <= *under;
  return fits ? "" : fmt::format("`{}` is no scale: give a fraction up to 1, such as `1/4`", text);
}

}  // namespace

void add_scale(CLI::App& command, Session& session) {
  command
      .add_option("--scale", session.common.scale,
                  "Shrink the model's sizes, as `1/4`: each integer from 32 on that is an extent of an input")
      ->check(CLI::Validator(why_no_scale, ""));
}

void add_exclude_near(CLI::App& command, double& distance) {
  command
      .add_option("--exclude-near", distance,
                  "Show the author no entry of the corpus that is nearer to the model than this distance (0 to 1), nor "
                  "what was learnt on the same graph: for benchmarks")
      ->check(number_within(0, 1))
      ->capture_default_str();
}

Result<eval::JudgeOptions> Session::judge_options() const {
  eval::JudgeOptions options;
  options.target = TRY(target());
  options.worker = environment.worker;
  options.dtype = common.dtype;
  options.seed = common.seed;
  options.threads = common.threads;
  options.python = python();
  options.exporter = exporter_options().script;
  options.cache = environment.cache;
  options.waits = [this](const std::string& what) { progress(what); };
  return options;
}

}  // namespace tilepilot::cli
