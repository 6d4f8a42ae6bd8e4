// The reader of the IR's text: any text gives a program or errors that can be shown; a valid program prints and reads
// back as the same.
#include "compiler/diagnostics/render.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "tests/fuzz/target.h"

namespace tilepilot::fuzz {

const std::vector<std::string> kWords = {
    "(",       ")",        "[",    "]",      "{",        "}",       ":",      ",",
    "=",       "->",       "\n",   "  ",     "0",        "1",       "-1",     "99999999999999999999",
    "0x7f",    "1e400",    "nan",  "inf",    "f32",      "float32", "int32",  "bool",
    "for ",    "if ",      "else", "copy ",  "gemm ",    "fill ",   "load",   "store ",
    "kernel ", "program ", "%",    "shared", "fragment", "local",   "global", "+",
    "*",       "//",       "<",    "&&",     "select",   "cast",    "min",    "max",
    "\""};

}  // namespace tilepilot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilepilot;
  SourceMap sources;
  DiagnosticList diagnostics;
  const int32_t file = sources.add("input.tir", {reinterpret_cast<const char*>(data), size});
  auto program = ir::read_text(sources, file, diagnostics);
  fuzz::require(program.has_value() == !diagnostics.has_errors(), "a program, or errors");
  if (!program) {
    fuzz::require(!render(sources, diagnostics).empty(), "errors can be shown");
    return 0;
  }
  if (!ir::verify(*program, diagnostics)) return 0;
  const std::string printed = ir::to_text(*program);
  DiagnosticList again;
  auto twin = ir::read_text(sources, sources.add("printed.tir", printed), again);
  fuzz::require(twin.has_value(), "what was printed can be read", printed + render(sources, again));
  fuzz::require(ir::structurally_equal(*program, *twin), "what was printed reads back the same", printed);
  return 0;
}
