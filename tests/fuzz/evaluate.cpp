// The evaluator: any program ends within its budget, with values or with an error that can be shown, and every tile
// program that it stages keeps the rules of the IR.
#include "compiler/diagnostics/render.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/tile/tile.h"
#include "compiler/syntax/parser.h"
#include "tests/fuzz/target.h"

namespace tilepilot::fuzz {

const std::vector<std::string> kWords = {"range(9)",
                                         "10**9",
                                         "-1",
                                         "0",
                                         "None",
                                         "True",
                                         "[x for x in y]",
                                         "yield x",
                                         "lambda: x",
                                         "A[0, 0]",
                                         "A[0:4, :]",
                                         "T.Kernel(2, threads=64)",
                                         "T.Parallel(8, 8)",
                                         "T.Pipelined(3, num_stages=2)",
                                         "T.copy(A, B)",
                                         "T.gemm(a, b, c)",
                                         "T.alloc_shared((8, 8), 'float16')",
                                         "T.alloc_fragment((8,), 'float32')",
                                         "T.reduce_sum(a, r, dim=0)",
                                         "T.ceildiv(x, 3)",
                                         "T.dynamic('n')",
                                         "T.sync_threads()",
                                         "T.get_thread_binding()",
                                         "T.if_then_else(x, y, z)",
                                         "if x:\n",
                                         "while x > 0:\n",
                                         "for i in T.serial(4):\n",
                                         "try:\n",
                                         "except Exception:\n",
                                         "with x as y:\n",
                                         "break\n",
                                         "return x\n",
                                         "del x\n",
                                         "x += 1\n",
                                         "*x",
                                         "**x",
                                         "'%s' % x",
                                         "f'{x:>9}'",
                                         "1 << 70",
                                         "x @ y",
                                         "~x",
                                         "not x",
                                         "sorted(x, key=y)",
                                         "zip(x, y)",
                                         "map(x, y)",
                                         "next(x)",
                                         "isinstance(x, int)",
                                         "super()",
                                         "class C(D):\n",
                                         "@f\n"};

namespace {

void check(const SourceMap& sources, const ir::Program& program) {
  DiagnosticList violations;
  const bool valid = ir::verify(program, violations);
  require(valid, "what is staged keeps the rules of the IR",
          ir::to_text(program) + (valid ? "" : render(sources, violations)));
}

}  // namespace
}  // namespace tilepilot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilepilot;
  SourceMap sources;
  DiagnosticList diagnostics;
  auto tree = syntax::parse(sources, sources.add("input.py", {reinterpret_cast<const char*>(data), size}), diagnostics);
  if (!tree) return 0;
  stage::Limits limits;
  limits.steps = 20'000;
  limits.call_depth = 50;
  limits.container_items = 20'000;
  stage::Interpreter interpreter(sources, limits);
  stage::TileOptions options;
  options.on_program = [&](const ir::Program& program) { fuzz::check(sources, program); };
  stage::install_tile_language(interpreter, std::move(options));
  stage::install_torch_stub(interpreter);
  interpreter.set_print([](const std::string&) {});
  interpreter.set_print_error([](const std::string&) {});
  auto ran = interpreter.run_module(tree, "input");
  if (!ran.ok()) fuzz::require(!render(sources, ran.error()).empty(), "errors can be shown");
  return 0;
}
