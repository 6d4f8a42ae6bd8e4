#include "eval/worker/script.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "compiler/diagnostics/render.h"
#include "compiler/ir/verify.h"
#include "compiler/source/file.h"
#include "compiler/syntax/parser.h"
#include "eval/host/torch_host.h"

namespace tilepilot::eval {

namespace {

void default_to(std::function<void(const std::string&)>& stream, std::FILE* file) {
  if (!stream) stream = [file](const std::string& text) { fmt::print(file, "{}", text); };
}

// How far a script came.
struct Progress {
  bool parsed = false;
  int staged = 0, launched = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

void write_report(const std::string& path, const Progress& progress, int compiled, int exit_code,
                  const std::string& diagnostics) {
  if (path.empty()) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - progress.start;
  const nlohmann::json report = {{"parsed", progress.parsed},
                                 {"staged", progress.staged},
                                 {"compiled", compiled},
                                 {"launched", progress.launched},
                                 {"exit_code", exit_code},
                                 {"seconds", seconds.count()},
                                 {"diagnostics", nlohmann::json::parse(diagnostics)}};
  std::ofstream(path) << report.dump(2) << "\n";
}

}  // namespace

int run_script(stage::Script script, ScriptOptions options) {
  ScriptStreams& streams = options.streams;
  default_to(streams.output, stdout);
  default_to(streams.error, stderr);
  SourceMap sources;
  DiagnosticList diagnostics;
  Progress progress;
  CompileClock backend(
      runtime::cpu_backend({.compiler = {}, .cache = runtime::default_cache_directory(), .extra_flags = {}}));
  auto finish = [&](int code) {
    streams.error(render(sources, diagnostics));
    write_report(options.report, progress, backend.kernels(), code, render_json(sources, diagnostics));
    return code;
  };
  std::string text;
  if (!read_file(script.path, text)) {
    diagnostics.add({DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", script.path), {}, ""});
    return finish(2);
  }
  const int32_t file = sources.add(script.path, std::move(text));
  auto tree = syntax::parse(sources, file, diagnostics);
  if (!tree) return finish(1);
  progress.parsed = true;
  TorchHost host({.is_script = true});
  // Nobody waits for a script but the one who started it.
  stage::Interpreter interpreter(sources, {.steps = std::numeric_limits<int64_t>::max()});
  interpreter.set_print(streams.output);
  interpreter.set_print_error(streams.error);
  host.install(interpreter);
  script.modules = torch_modules();
  for (const stage::EmbeddedModule& module : stage::tile_modules()) script.modules.push_back(module);
  stage::install_script(interpreter, script);
  add_run_limits(interpreter, options.limits, backend);
  stage::TileOptions tile;
  tile.backend = &backend;
  tile.host = &host.tensors();
  tile.raw_memory = true;
  tile.on_program = [&](const ir::Program& program) { progress.staged += ir::verify(program, diagnostics) ? 1 : 0; };
  tile.on_launch = [&](const ir::Program&, bool begins) { progress.launched += begins ? 0 : 1; };
  stage::install_tile_language(interpreter, std::move(tile));
  // Importable, as in Python.
  auto main = interpreter.make_module(tree, "__main__");
  interpreter.add_module("__main__", main);
  Status ran = interpreter.run_module_in(tree, main);
  auto add_others = [&](Severity severity) {
    for (const Diagnostic& other : interpreter.diagnostics().items())
      if (other.severity() == severity) diagnostics.add(other);
  };
  add_others(Severity::warning);
  if (ran.ok()) return finish(0);
  if (auto code = stage::exit_status(interpreter, ran.error())) return finish(*code);
  diagnostics.add(stage::seen_from_script(sources, ran.error()));
  add_others(Severity::error);
  return finish(1);
}

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace tilepilot::eval
