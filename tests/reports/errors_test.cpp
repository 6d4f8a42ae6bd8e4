// Programs that were accepted in silence or died in the compiler's depths: here an error of a kind that says why.
#include "compiler/driver/compile.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

struct Refusal {
  int thread;
  std::string name;
  std::string body;  // of a kernel with A: (64, 64) float16 and B: (64, 64) float32
  std::string message;
  Severity severity = Severity::error;
};

std::vector<Refusal> refusals() {
  return {
      {2979, "AFillBeyondTheTile", "s = T.alloc_shared((8,), 'int32')\nT.fill(s[6:12], 7)",
       "index 11 of axis 0 lies outside"},
      {2979, "AClearBeyondTheTile", "s = T.alloc_shared((8,), 'int32')\nT.clear(s[6:12])",
       "index 11 of axis 0 lies outside"},
      {2979, "ACopyBeyondTheTile", "s = T.alloc_shared((8,), 'float16')\nT.copy(A[0, 0:6], s[6:12])",
       "index 11 of axis 0 lies outside"},
      {2979, "AReductionBeyondTheTile",
       "s = T.alloc_shared((8, 4), 'float32')\nr = T.alloc_fragment((6,), 'float32')\nT.reduce_sum(s[6:12, :], r, "
       "dim=1)",
       "index 11 of axis 0 lies outside"},
      {2979, "AScanBeyondTheTile", "s = T.alloc_shared((8,), 'float32')\nT.cumsum(s[6:12])",
       "index 11 of axis 0 lies outside"},
      {2979, "AGemmBeyondTheTile",
       "s = T.alloc_shared((16, 16), 'float16')\nc = T.alloc_fragment((16, 16), 'float32')\nT.gemm(s[8:24, :], s, c)",
       "index 23 of axis 0 lies outside"},
      {1301, "ASliceWithAStep", "s = T.alloc_shared((64, 32), 'float16')\nT.copy(A[:, 0::2], s)", "step"},
      {3004, "BytesIntoFloat16",
       "a = T.alloc_shared((16, 16), 'int8')\nc = T.alloc_fragment((16, 16), 'float16')\nT.gemm(a, a, c)",
       "cannot accumulate int8 products in float16"},
      {3010, "ATileOfSymbolicExtent", "n = T.dynamic('n')\ns = T.alloc_shared((n, 16), 'float16')",
       "tile shapes are compile-time constants"},
      {3035, "AKPackThatNobodyHeeds",
       "a = T.alloc_shared((16, 16), 'float16')\nc = T.alloc_fragment((16, 16), 'float32')\nT.gemm(a, a, c, k_pack=3)",
       "`k_pack` of `T.gemm` has no effect", Severity::warning},
      {2570, "BitsOfFloats",
       "a = T.alloc_fragment((4, 4), 'float32')\nr = T.alloc_fragment((4,), 'float32')\nT.reduce_bitand(a, r, dim=1)",
       "float32"},
      {2605, "ASparseProduct", "T.gemm_sp(A, A, B, B)", "gemm_sp"},
      {1883, "ACopyIsNoBroadcast", "s = T.alloc_shared((64, 1), 'float16')\nT.copy(s, A)", "between unequal extents"},
      {738, "AnIndexBeyondTheTile", "s = T.alloc_shared((8,), 'float32')\ns[8] = 1.0", "8"},
      {3183, "AWordThatIsAlmostRight", "s = T.alloc_shard((8,), 'float32')", "alloc_shard"},
  };
}

class ReportedErrors : public ::testing::TestWithParam<Refusal> {};

TEST_P(ReportedErrors, SayWhy) {
  const Refusal& refusal = GetParam();
  driver::CompileRequest request;
  request.name = "program.py";
  request.text =
      "import tilelang\nimport tilelang.language as T\n\n@T.prim_func\n"
      "def main(A: T.Tensor((64, 64), 'float16'), B: T.Tensor((64, 64), 'float32')):\n"
      "    with T.Kernel(1, threads=128) as bx:\n        ";
  for (char letter : refusal.body) request.text += letter == '\n' ? "\n        " : std::string(1, letter);
  request.text += "\n";
  SourceMap sources;
  driver::CompileResult result = driver::compile(sources, request);
  const auto& items = result.diagnostics.items();
  const bool said = std::any_of(items.begin(), items.end(), [&](const Diagnostic& each) {
    return info(each.kind).severity == refusal.severity && each.span.valid() &&
           each.message.find(refusal.message) != std::string::npos;
  });
  EXPECT_TRUE(said) << render(sources, result.diagnostics);
  EXPECT_EQ(result.diagnostics.has_errors(), refusal.severity == Severity::error);
}

INSTANTIATE_TEST_SUITE_P(Threads, ReportedErrors, ::testing::ValuesIn(refusals()),
                         [](const auto& info) { return info.param.name + "_" + std::to_string(info.param.thread); });

}  // namespace
}  // namespace tilepilot::stage
