// The counts of a launch against numbers worked out by hand, on programs whose work is known.
#include "compiler/ir/launch_work.h"

#include <gmock/gmock.h>

#include "compiler/driver/compile.h"

namespace tilepilot {
namespace {

constexpr const char* kHeader = "import tilelang\nimport tilelang.language as T\n";

ir::LaunchWork count(const std::string& text, const std::string& call) {
  SourceMap sources;
  const auto compiled = driver::compile(sources, {.name = "work.py", .text = kHeader + text, .call = call});
  EXPECT_EQ(compiled.programs.size(), 1u);
  if (compiled.programs.size() != 1) return {};
  EXPECT_EQ(compiled.programs[0].kernels.size(), 1u);
  return ir::launch_work(compiled.programs[0].kernels[0], {});
}

constexpr const char* kMatmul = R"(
def matmul(M, N, K, bM, bN, bK):
    @T.prim_func
    def main(A: T.Tensor((M, K), 'float16'), B: T.Tensor((K, N), 'float16'), C: T.Tensor((M, N), 'float32')):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=128) as (bx, by):
            a = T.alloc_shared((bM, bK), 'float16')
            b = T.alloc_shared((bK, bN), 'float16')
            c = T.alloc_fragment((bM, bN), 'float32')
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=2):
                T.copy(A[by * bM, k * bK], a)
                T.copy(B[k * bK, bx * bN], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * bM, bx * bN])
    return main
)";

TEST(LaunchWork, CountsAProductOfTiles) {
  const ir::LaunchWork work = count(kMatmul, "matmul(256, 128, 512, 64, 64, 32)");
  EXPECT_EQ(work.blocks, 8);
  EXPECT_DOUBLE_EQ(work.product_flops, 2.0 * 256 * 128 * 512);
  EXPECT_EQ(work.product_type, "float16");
  // Each tensor once; blocks read A once for each of two columns of blocks, B once for each of four rows.
  EXPECT_DOUBLE_EQ(work.least_bytes, 2.0 * 256 * 512 + 2.0 * 512 * 128 + 4.0 * 256 * 128);
  EXPECT_DOUBLE_EQ(work.requested_bytes, 2 * 2.0 * 256 * 512 + 4 * 2.0 * 512 * 128 + 4.0 * 256 * 128);
  EXPECT_TRUE(work.exact);
}

// What reaches past the end of a tensor is not moved.
TEST(LaunchWork, CountsNoBytesOutsideOfTensors) {
  const ir::LaunchWork work = count(kMatmul, "matmul(100, 64, 32, 64, 64, 32)");
  EXPECT_EQ(work.blocks, 2);
  EXPECT_DOUBLE_EQ(work.least_bytes, 2.0 * 100 * 32 + 2.0 * 32 * 64 + 4.0 * 100 * 64);
  EXPECT_DOUBLE_EQ(work.product_flops, 2 * 2.0 * 64 * 64 * 32) << "products are of whole tiles";
}

TEST(LaunchWork, CountsElementsOfParallelLoops) {
  const ir::LaunchWork work = count(R"(
def scale(N, block):
    @T.prim_func
    def main(A: T.Tensor((N, 64), 'float32'), S: T.Tensor((64,), 'float32'), B: T.Tensor((N, 64), 'float32')):
        with T.Kernel(N // block, threads=64) as bx:
            for i, j in T.Parallel(block, 64):
                B[bx * block + i, j] = T.exp(A[bx * block + i, j]) * S[j] + 1.0
    return main
)",
                                    "scale(128, 32)");
  EXPECT_DOUBLE_EQ(work.other_flops, 2.0 * 128 * 64);
  EXPECT_DOUBLE_EQ(work.functions, 128 * 64);
  EXPECT_DOUBLE_EQ(work.product_flops, 0);
  EXPECT_EQ(work.product_type, "");
  // S is named by 32 rows of a block together, and by four blocks.
  EXPECT_DOUBLE_EQ(work.requested_bytes, 2 * 4.0 * 128 * 64 + 4 * 4.0 * 64);
  EXPECT_DOUBLE_EQ(work.least_bytes, 2 * 4.0 * 128 * 64 + 4.0 * 64);
  EXPECT_TRUE(work.exact);
}

TEST(LaunchWork, CountsPowersAmongFunctions) {
  const ir::LaunchWork work = count(R"(
def powers(N):
    @T.prim_func
    def main(A: T.Tensor((N, 64), 'float32'), B: T.Tensor((N, 64), 'float32')):
        with T.Kernel(N, threads=64) as bx:
            for j in T.Parallel(64):
                B[bx, j] = T.pow(A[bx, j], T.float32(2.5)) + T.atan2(A[bx, j], T.float32(2.0))
    return main
)",
                                    "powers(128)");
  EXPECT_DOUBLE_EQ(work.functions, 2 * 128 * 64);
  EXPECT_DOUBLE_EQ(work.other_flops, 128 * 64);
}

// A triangle of tiles: block b makes b + 1 steps.
TEST(LaunchWork, CountsLoopsThatDependOnTheBlock) {
  const std::string triangle = R"(
def triangle(N):
    @T.prim_func
    def main(A: T.Tensor((N * 16, 16), 'float32'), B: T.Tensor((N * 16, 16), 'float32')):
        with T.Kernel(N, threads=32) as bx:
            a = T.alloc_shared((16, 16), 'float32')
            c = T.alloc_fragment((16, 16), 'float32')
            T.clear(c)
            for k in T.serial(bx + 1):
                T.copy(A[k * 16, 0], a)
                T.gemm(a, a, c)
            T.copy(c, B[bx * 16, 0])
    return main
)";
  const double step = 2.0 * 16 * 16 * 16;
  const ir::LaunchWork few = count(triangle, "triangle(8)");
  EXPECT_DOUBLE_EQ(few.product_flops, 36 * step);
  EXPECT_TRUE(few.exact);
  const ir::LaunchWork many = count(triangle, "triangle(1000)");
  EXPECT_NEAR(many.product_flops, 500500 * step, 0.02 * 500500 * step);
  EXPECT_FALSE(many.exact) << "a mean of a few blocks";
}

TEST(LaunchWork, SaysWhereDataDecide) {
  const ir::LaunchWork work = count(R"(
def choose(N):
    @T.prim_func
    def main(A: T.Tensor((N,), 'float32'), B: T.Tensor((N,), 'float32')):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(N):
                if A[i] > 0.0:
                    B[i] = A[i] * 2.0
    return main
)",
                                    "choose(64)");
  EXPECT_FALSE(work.exact);
  EXPECT_DOUBLE_EQ(work.other_flops, 64);
}

}  // namespace
}  // namespace tilepilot
