#include "tests/diagnostics/case.h"

#include "compiler/diagnostics/render.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/syntax/parser.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

void check_ir(SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  auto program = ir::read_text(sources, file, diagnostics);
  if (program) ir::verify(*program, diagnostics);
}

void run_python(SourceMap& sources, int32_t file, DiagnosticList& diagnostics) {
  syntax::parse(sources, file, diagnostics);
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
