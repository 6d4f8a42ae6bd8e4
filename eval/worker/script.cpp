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
#include "eval/torch/gpu.h"
#include "eval/worker/target_backend.h"

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

// What the program is not to blame for.
bool is_missing_here(DiagnosticKind kind) {
  using Kind = DiagnosticKind;
  return kind == Kind::compiler_missing || kind == Kind::nvrtc_missing || kind == Kind::driver_missing ||
         kind == Kind::worker_unavailable;
}

TorchHostOptions host_options(const std::shared_ptr<const runtime::cuda::Device>& gpu) {
  TorchHostOptions options{.is_script = true};
  if (gpu) options.device = "cuda:0";
  options.gpu = gpu;
  return options;
}

// Faults of the last launches; earlier ones were met by what came after them.
Status end_of_work(const std::shared_ptr<const runtime::cuda::Device>& gpu) {
  if (!gpu) return {};
  TRY(gpu->use());
  return gpu->wait(current_stream());
}

}  // namespace

int run_script(stage::Script script, ScriptOptions options) {
  ScriptStreams& streams = options.streams;
  default_to(streams.output, stdout);
  default_to(streams.error, stderr);
  SourceMap sources;
  DiagnosticList diagnostics;
  Progress progress;
  auto opened = open_target(options.target, {runtime::default_cache_directory(), &sources});
  const std::shared_ptr<const runtime::cuda::Device> gpu = opened.ok() ? opened->gpu : nullptr;
  CompileClock backend(opened.ok() ? std::move(opened->kernels) : nullptr);
  auto finish = [&](int code) {
    streams.error(render(sources, diagnostics));
    write_report(options.report, progress, backend.kernels(), code, render_json(sources, diagnostics));
    return code;
  };
  if (!opened.ok()) {
    diagnostics.add(opened.error());
    return finish(3);
  }
  std::string text;
  if (!read_file(script.path, text)) {
    diagnostics.add({DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", script.path), {}, ""});
    return finish(2);
  }
  const int32_t file = sources.add(script.path, std::move(text));
  auto tree = syntax::parse(sources, file, diagnostics);
  if (!tree) return finish(1);
  progress.parsed = true;
  TorchHost host(host_options(gpu));
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
  if (ran.ok()) ran = end_of_work(gpu);
  auto add_others = [&](Severity severity) {
    for (const Diagnostic& other : interpreter.diagnostics().items())
      if (other.severity() == severity) diagnostics.add(other);
  };
  add_others(Severity::warning);
  if (ran.ok()) return finish(0);
  if (auto code = stage::exit_status(interpreter, ran.error())) return finish(*code);
  diagnostics.add(stage::seen_from_script(sources, ran.error()));
  add_others(Severity::error);
  return finish(is_missing_here(ran.error().kind) ? 3 : 1);
}

std::string libtorch_version() {
  return libtorch_has_cuda() ? TORCH_VERSION " with CUDA" : TORCH_VERSION " without CUDA";
}

}  // namespace tilepilot::eval
