// Which instructions a kernel's code has, by its text.
#include "compiler/targets/cuda/instructions.h"

#include <gmock/gmock.h>

#include "compiler/driver/compile.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::targets::cuda {

using gpu::Architecture;

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kHalfProduct = R"(
import tilelang
import tilelang.language as T

def product(N):
    @T.prim_func
    def main(A: T.Tensor((N, N), 'float16'), B: T.Tensor((N, N), 'float16'), C: T.Tensor((N, N), 'float16')):
        with T.Kernel(N // 128, N // 128, threads=128) as (bx, by):
            a = T.alloc_shared((128, 32), 'float16')
            b = T.alloc_shared((32, 128), 'float16')
            c = T.alloc_fragment((128, 128), 'float32')
            T.clear(c)
            for k in T.Pipelined(N // 32, num_stages=2):
                T.copy(A[by * 128, k * 32], a)
                T.copy(B[k * 32, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(32):
                C[0, i] = C[0, i] + C[1, i]
    return main
)";

std::vector<std::string> instructions(Architecture architecture, size_t launch) {
  SourceMap sources;
  const auto compiled = driver::compile(sources, {.name = "p.py", .text = kHalfProduct, .call = "product(256)"});
  EXPECT_EQ(compiled.programs.size(), 1u);
  const auto code = generate(gpu::for_usual_tensors(compiled.programs.at(0)), architecture);
  EXPECT_TRUE(code.ok()) << (code.ok() ? "" : code.error().message);
  return instructions_of(code->source, code->launches.at(launch).function);
}

TEST(Instructions, AreThoseOfTheMachine) {
  const auto hopper = instructions(Architecture::sm_90a, 0);
  EXPECT_THAT(hopper, Contains("wgmma"));
  EXPECT_THAT(hopper, Contains("TMA"));
  EXPECT_THAT(hopper, Not(Contains("cp.async")));
  const auto ampere = instructions(Architecture::sm_80, 0);
  EXPECT_THAT(ampere, Contains("mma"));
  EXPECT_THAT(ampere, Contains("cp.async"));
  EXPECT_THAT(ampere, Contains("ldmatrix"));
  EXPECT_THAT(ampere, Not(Contains("wgmma")));
}

// Only those of the function itself.
TEST(Instructions, AreThoseOfOneKernel) {
  EXPECT_THAT(instructions(Architecture::sm_90a, 1), IsEmpty());
  EXPECT_THAT(instructions_of("extern \"C\" __global__ void f() { tma_load_2d(a); }", "g"), IsEmpty());
  EXPECT_THAT(instructions_of("extern \"C\" __global__ void f() { tma_load_2d(a); xmma_m16(b); }", "f"),
              ElementsAre("TMA"));
  EXPECT_THAT(instructions_of("", "f"), IsEmpty());
}

}  // namespace
}  // namespace tilepilot::targets::cuda
