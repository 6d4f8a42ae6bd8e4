#include "eval/worker/script.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "compiler/diagnostics/render.h"
#include "compiler/source/file.h"
#include "compiler/syntax/parser.h"
#include "eval/host/torch_host.h"

namespace tilepilot::eval {

int run_script(const std::string& path) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto finish = [&](int code) {
    fmt::print(stderr, "{}", render(sources, diagnostics));
    return code;
  };
  std::string text;
  if (!read_file(path, text)) {
    diagnostics.add({DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", path), {}, ""});
    return finish(2);
  }
  const int32_t file = sources.add(path, std::move(text));
  auto tree = syntax::parse(sources, file, diagnostics);
  if (!tree) return finish(1);

  auto backend = runtime::cpu_backend({.compiler = {}, .cache = runtime::default_cache_directory(), .extra_flags = {}});
  TorchHost host;
  stage::Interpreter interpreter(sources);
  host.install(interpreter);
  stage::TileOptions tile;
  tile.backend = backend.get();
  tile.host = &host.tensors();
  stage::install_tile_language(interpreter, std::move(tile));
  interpreter.set_print([](const std::string& line) { fmt::print("{}", line); });
  at::NoGradGuard no_grad;
  auto module = interpreter.run_module(tree, "__main__");
  for (const Diagnostic& warning : interpreter.diagnostics().items()) diagnostics.add(warning);
  if (!module) diagnostics.add(module.error());
  return finish(module ? 0 : 1);
}

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace tilepilot::eval
