// Fragments that threads address by element, beside tile operators on them. Run through the CPU backend and the
// reference interpreter.
#include <fmt/format.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class ThreadFragments : public Run {
 protected:
  ThreadFragments() : Run(checked_backend()) {}

  // Row sums of x0[50, 9] in blocks of 16 threads, a row a thread.
  void expect_row_sums(const std::string& body) {
    load(R"(
@tilelang.jit(out_idx=[-1])
def build(M=50, N=9):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=16) as bx:
            tx = T.get_thread_binding(0)
            row = bx * 16 + tx
)" + body +
         "    return main\n");
    const Array x = random_array(ir::kFloat32, {50, 9}, 1);
    expect_near(call("build()(x0)", {x}), 1e-5, [&](int64_t i) {
      double sum = 0;
      for (int64_t j = 0; j < 9; ++j) sum += x->at(i * 9 + j);
      return sum;
    });
  }
};

TEST_F(ThreadFragments, ClearedUnderACondition) {
  expect_row_sums(R"(
            if row < M:
                acc = T.alloc_fragment((1,), "float32")
                T.clear(acc)
                for j in T.serial(N):
                    acc[0] += X[row, j]
                Y[row] = acc[0]
)");
}

TEST_F(ThreadFragments, ClearedByAllUsedBySome) {
  expect_row_sums(R"(
            acc = T.alloc_fragment((1,), "float32")
            T.fill(acc, 0)
            for j in T.serial(N):
                if row < M:
                    acc[0] += X[row, j]
            if row < M:
                Y[row] = acc[0]
)");
}

TEST_F(ThreadFragments, CopiedFromARowOfEachThread) {
  expect_row_sums(R"(
            own = T.alloc_fragment((N,), "float32")
            acc = T.alloc_fragment((1,), "float32")
            T.clear(acc)
            T.copy(X[row, 0], own)
            for j in T.serial(N):
                acc[0] += own[j]
            if row < M:
                Y[row] = acc[0]
)");
}

TEST_F(ThreadFragments, SetByAParallelLoop) {
  expect_row_sums(R"(
            acc = T.alloc_fragment((4,), "float32")
            for i in T.Parallel(4):
                acc[i] = 0.0
            for j in T.serial(N):
                if row < M:
                    acc[j % 4] += X[row, j]
            if row < M:
                Y[row] = acc[0] + acc[1] + acc[2] + acc[3]
)");
}

TEST_F(ThreadFragments, SetByAParallelLoopUnderACondition) {
  expect_row_sums(R"(
            if row < M:
                acc = T.alloc_fragment((2, 2), "float32")
                for i, j in T.Parallel(2, 2):
                    acc[i, j] = T.if_then_else(i == j, 0.0, X[row, 0] * 0)
                for i, j in T.Parallel(2, 2):
                    acc[i, j] = acc[i, j] * 2 + 1
                for j in T.serial(N):
                    acc[j % 2, 1] += X[row, j]
                Y[row] = acc[0, 1] + acc[1, 1] - 2
)");
}

TEST_F(ThreadFragments, SetByAParallelLoopOrFilledDifferently) {
  expect_row_sums(R"(
            own = T.alloc_fragment((N,), "float32")
            acc = T.alloc_fragment((1,), "float32")
            for j in T.Parallel(N):
                own[j] = X[row, j]
            T.fill(acc, X[row, 0])
            for j in T.serial(1, N):
                acc[0] += own[j]
            if row < M:
                Y[row] = acc[0]
)");
}

// No other thread sees what a thread adds in its registers.
TEST_F(ThreadFragments, UpdatedAtomically) {
  expect_row_sums(R"(
            acc = T.alloc_fragment((2,), "float32")
            T.clear(acc)
            for j in T.serial(N):
                if row < M:
                    T.atomic_add(acc[j % 2], X[row, j])
            if row < M:
                Y[row] = acc[0] + acc[1]
)");
}

TEST_F(ThreadFragments, UpdatedAtomicallyByAllThreadsAlike) {
  expect_row_sums(R"(
            acc = T.alloc_fragment((1,), "float32")
            T.fill(acc, -1)
            T.atomic_add(acc[0], 1)
            for j in T.serial(N):
                if row < M:
                    acc[0] += X[row, j]
            if row < M:
                Y[row] = acc[0]
)");
}

// Of a fragment that tile operators use threads hold no copies: what all of them store is one store.
TEST_F(ThreadFragments, AScalarBesideTileOperators) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def build(M=12, N=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=32) as m:
            tx = T.get_thread_binding(0)
            row = T.alloc_fragment((1, N), "float32")
            total = T.alloc_fragment((1,), "float32")
            running = T.alloc_fragment((1,), "float32")
            running[0] = 1.0
            T.copy(X[m, 0], row)
            T.reduce_sum(row, total, dim=1)
            total[0] = total[0] / N
            for k in T.serial(3):
                running[0] += total[0]
            for j in T.serial(N // 32):
                Y[m, j * 32 + tx] = X[m, j * 32 + tx] - running[0] * total[0]
    return main
)");
  const Array x = random_array(ir::kFloat32, {12, 64}, 2);
  expect_near(call("build()(x0)", {x}), 1e-5, [&](int64_t i) {
    double mean = 0;
    for (int64_t j = 0; j < 64; ++j) mean += x->at(i / 64 * 64 + j) / 64;
    return x->at(i) - (1 + 3 * mean) * mean;
  });
}

// A warp works on tiles of its own: what all of its threads store is one store there.
TEST_F(ThreadFragments, WhatARoleStoresAlikeIsOneStore) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def build():
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8, 64), "float32")):
        with T.Kernel(8, threads=96) as row:
            shared = T.alloc_shared((64,), "float32")
            if T.get_thread_binding() < 32:
                scale = T.alloc_fragment((1,), "float32")
                tile = T.alloc_fragment((64,), "float32")
                scale[0] = 0
                for k in T.serial(4):
                    scale[0] += X[row, k]
                for j in T.Parallel(64):
                    tile[j] = X[row, j] * scale[0]
                T.copy(tile, shared)
            T.copy(shared, Y[row, 0])
    return main
)");
  const Array x = random_array(ir::kFloat32, {8, 64}, 1);
  expect_near(call("build()(x0)", {x}), 1e-5, [&](int64_t i) {
    double scale = 0;
    for (int64_t k = 0; k < 4; ++k) scale += x->at(i / 64 * 64 + k);
    return x->at(i) * scale;
  });
}

TEST_F(ThreadFragments, WhatThreadsStoreDifferentlyInATileIsRefused) {
  const auto fails = [&](const char* statement) {
    load(fmt::format(R"(
@tilelang.jit(out_idx=[-1])
def build():
    @T.prim_func
    def main(X: T.Tensor((32,), "float32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding(0)
            tile = T.alloc_fragment((32,), "float32")
            total = T.alloc_fragment((1,), "float32")
            {}
            T.reduce_sum(tile, total, dim=0)
            Y[0] = total[0]
    return main
)",
                     statement));
    const std::string message = failure("build()(x0)", {random_array(ir::kFloat32, {32}, 3)});
    EXPECT_NE(message.find("each thread writes to the fragment"), std::string::npos) << statement << ": " << message;
  };
  fails("tile[tx] = X[tx]");
  fails("T.atomic_add(tile[tx % 4], X[tx])");
  fails("T.atomic_max(tile[0], 1)");
}

}  // namespace
}  // namespace tilepilot::stage
