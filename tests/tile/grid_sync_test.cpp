// Barriers of all blocks, run through the CPU backend and the reference interpreter.
#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/passes/grid_sync.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class GridSync : public Run {
 protected:
  GridSync() : Run(checked_backend()) {}

  void load_kernel(const std::string& before, const std::string& after) {
    load(R"(
@tilelang.jit(out_idx=[-1])
def build(M=8, N=32):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), P: T.Tensor((M,), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=32) as row:
            tile = T.alloc_fragment((N,), "float32")
            total = T.alloc_fragment((1,), "float32")
            other = (row + 1) % M
)" + before +
         "            T.sync_grid()\n" + after + "    return main\n");
  }
};

// Each block needs what the others wrote.
TEST_F(GridSync, BlocksSeeWhatOthersWrote) {
  load_kernel(R"(
            T.copy(X[row, 0], tile)
            T.reduce_sum(tile, total, dim=0)
            P[row] = total[0]
)",
              R"(
            for j in T.Parallel(N):
                Y[row, j] = X[row, j] + P[other]
)");
  const Array x = random_array(ir::kFloat32, {8, 32}, 1), p = random_array(ir::kFloat32, {8}, 2);
  expect_near(call("build()(x0, x1)", {x, p}), 1e-5, [&](int64_t i) {
    double sum = 0;
    for (int64_t j = 0; j < 32; ++j) sum += x->at((i / 32 + 1) % 8 * 32 + j);
    return x->at(i) + sum;
  });
  EXPECT_EQ(launches_, 1);
}

// What blocks hold on both sides is kept meanwhile: tiles, values that were loaded, and what threads have of their own.
TEST_F(GridSync, BlocksKeepWhatTheyHold) {
  const Array x = random_array(ir::kFloat32, {8, 32}, 1), p = random_array(ir::kFloat32, {8}, 2);
  load_kernel("            T.copy(X[row, 0], tile)\n            first = P[row] + 1.0\n            P[row] = 0.0\n",
              R"(
            for j in T.Parallel(N):
                tile[j] += first + P[other]
            T.copy(tile, Y[row, 0])
)");
  const Array given = random_array(ir::kFloat32, {8}, 2);  // the kernel changes it
  expect_near(call("build()(x0, x1)", {x, given}), 1e-6, [&](int64_t i) { return x->at(i) + p->at(i / 32) + 1.0; });
  load_kernel(R"(
            tx = T.get_thread_binding()
            shared = T.alloc_shared((N,), "float32")
            own = T.alloc_local((2,), "float32")
            seen = X[row, tx]
            shared[tx] = seen
            own[0] = seen * 2.0
            own[1] = seen * 3.0
            P[row] = 1.0
)",
              R"(
            own[0] += P[other]
            T.sync_grid()
            Y[row, tx] = shared[N - 1 - tx] + own[0] + own[1] * seen
)");
  expect_near(call("build()(x0, x1)", {x, given}), 1e-5, [&](int64_t i) {
    const double mine = x->at(i), opposite = x->at(i / 32 * 32 + 31 - i % 32);
    return opposite + mine * 2 + 1 + mine * mine * 3;
  });
}

// What one part writes a share of, and a later one reads, goes through it whole.
TEST_F(GridSync, BlocksKeepWhatIsWrittenInShares) {
  load_kernel("            T.copy(X[row, 0], tile)\n            P[row] = 1.0\n", R"(
            for j in T.Parallel(N // 2):
                tile[j] = P[other] * 5.0
            T.sync_grid()
            T.copy(tile, Y[row, 0])
)");
  const Array x = random_array(ir::kFloat32, {8, 32}, 1), p = random_array(ir::kFloat32, {8}, 2);
  expect_near(call("build()(x0, x1)", {x, p}), 1e-6, [&](int64_t i) { return i % 32 < 16 ? 5.0 : x->at(i); });
}

// A tile that each part fills before it reads takes no memory between them.
TEST_F(GridSync, BlocksForgetWhatIsWrittenAnew) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const int32_t file = sources.add("sums.ir", R"(program sums(x: float32[4, 64], y: float32[4, 64]) {
  kernel bx in 4 threads 32 {
    fragment t: float32[64]
    fragment r: float32[1]
    copy x[bx : +1, 0 : 64] -> t
    reduce sum t -> r axis 0
    sync grid
    serial k in 2 {
      copy x[bx : +1, 0 : 64] -> t
      parallel j in 64 {
        y[bx, j] = t[j] + r[0]
      }
    }
  }
})");
  const auto program = ir::read_text(sources, file, diagnostics);
  ASSERT_TRUE(program);
  const auto split = passes::grid_sync(*program);
  ASSERT_TRUE(split.ok()) << split.error().message;
  ASSERT_EQ(split->workspaces.size(), 1);
  EXPECT_EQ(split->workspaces[0]->name, "r");
}

TEST_F(GridSync, StandsInTheKernelItself) {
  const std::vector<Array> arrays = {random_array(ir::kFloat32, {8, 32}, 1), random_array(ir::kFloat32, {8}, 2)};
  load_kernel("            P[row] = 1.0\n", "            for k in T.serial(2):\n                T.sync_grid()\n");
  EXPECT_THAT(failure("build()(x0, x1)", arrays), HasSubstr("inside a loop or branch"));
}

}  // namespace
}  // namespace tilepilot::stage
