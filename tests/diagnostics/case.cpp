#include "tests/diagnostics/case.h"

#include "compiler/diagnostics/render.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/tile/tile.h"
#include "compiler/syntax/parser.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

void check_ir(SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  auto program = ir::read_text(sources, file, diagnostics);
  if (program) ir::verify(*program, diagnostics);
}

void run_python(SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  syntax::ModuleRef module = syntax::parse(sources, file, diagnostics);
  if (!module) return;
  stage::Limits limits;
  limits.steps = 100'000;
  stage::Interpreter interpreter(sources, limits);
  stage::install_tile_language(interpreter, {});
  stage::install_torch_stub(interpreter);
  interpreter.set_print([](const std::string&) {});
  auto ran = interpreter.run_module(module, "case");
  for (const Diagnostic& warning : interpreter.diagnostics().items()) diagnostics.add(warning);
  if (!ran.ok()) diagnostics.add(ran.error());
}

}  // namespace

std::string diagnostics_of_case(const std::string& name) {
  SourceMap sources;
  DiagnosticList diagnostics;
  std::filesystem::path path = tests_path("diagnostics/cases/" + name);
  int32_t file = sources.add(name, read_text(path));
  if (path.extension() == ".ir") {
    check_ir(sources, file, diagnostics);
  } else {
    run_python(sources, file, diagnostics);
  }
  return render(sources, diagnostics);
}

}  // namespace tilepilot::testing
