// SIMT programs: what each thread does by its index, barriers, and arrays that each thread has for itself. Run through
// the CPU backend and compared with loops in C++.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Threads : public Run {};

TEST_F(Threads, GuardedElements) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def scale(N, threads=32):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            i = bx * threads + tx
            if i < N:
                B[i] = A[i] * 2.0
    return main
)");
  auto a = random_array(ir::kFloat32, {100}, 1);
  expect_near(call("scale(100)(x0)", {a}), 0, [&](int64_t i) { return a->at(i) * 2; });
}

TEST_F(Threads, ARowForEachThread) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def row_sums(M, N, threads=16):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, threads), threads=threads) as bx:
            tx = T.get_thread_binding(0)
            row = bx * threads + tx
            total = T.alloc_local((1,), "float32")
            total[0] = 0.0
            if row < M:
                for k in T.serial(N):
                    total[0] += A[row, k]
                B[row] = total[0]
    return main
)");
  auto a = random_array(ir::kFloat32, {37, 23}, 2);
  expect_near(call("row_sums(37, 23)(x0)", {a}), 1e-5, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 23; ++k) sum += a->at(i * 23 + k);
    return sum;
  });
}

constexpr const char* kTree = R"(
@tilelang.jit(out_idx=[-1])
def tree_sums(M, N, threads):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=threads) as row:
            tx = T.get_thread_binding()
            partial = T.alloc_shared((threads,), "float32")
            own = T.alloc_var("float32")
            own = 0.0
            for k in T.serial(T.ceildiv(N, threads)):
                column = k * threads + tx
                if column < N:
                    own = own + A[row, column]
            partial[tx] = own
            T.sync_threads()
            half = T.alloc_var("int32")
            half = threads // 2
            while half > 0:
                if tx < half:
                    partial[tx] = partial[tx] + partial[tx + half]
                T.sync_threads()
                half = half // 2
            if tx == 0:
                B[row] = partial[0]
    return main
)";

TEST_F(Threads, TreeReductionWithBarriersInAWhile) {
  load(kTree);
  auto a = random_array(ir::kFloat32, {5, 301}, 3);
  expect_near(call("tree_sums(5, 301, 64)(x0)", {a}), 1e-4, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 301; ++k) sum += a->at(i * 301 + k);
    return sum;
  });
}

// A thread's variables and arrays live on beyond a barrier, whether they are made of loads or of indices.
TEST_F(Threads, ValuesOutliveBarriers) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def rotate(N, threads):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            place = bx * threads + tx
            before = A[place] + 1.0
            tile = T.alloc_shared((threads,), "float32")
            two = T.alloc_local((2,), "float32")
            tile[tx] = A[place]
            two[0] = before
            two[1] = A[place] * 3.0
            T.sync_threads()
            next = (tx + 1) % threads
            B[place] = tile[next] + before * 10.0 + two[0] + two[1]
    return main
)");
  auto a = random_array(ir::kFloat32, {48}, 4);
  expect_near(call("rotate(48, 16)(x0)", {a}), 1e-5, [&](int64_t i) {
    const int64_t next = i / 16 * 16 + (i + 1) % 16;
    return a->at(next) + 11 * (a->at(i) + 1) + 3 * a->at(i);
  });
}

TEST_F(Threads, TwoDimensionalBlocksTransposeThroughSharedMemory) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def transpose(M, N, tile=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((N, M), "float16")):
        with T.Kernel(T.ceildiv(N, tile), T.ceildiv(M, tile), threads=(tile, tile)) as (bx, by):
            tx, ty = T.get_thread_bindings()
            s = T.alloc_shared((tile, tile), "float16")
            if by * tile + ty < M and bx * tile + tx < N:
                s[ty, tx] = A[by * tile + ty, bx * tile + tx]
            T.sync_threads()
            if bx * tile + ty < N and by * tile + tx < M:
                B[bx * tile + ty, by * tile + tx] = s[tx, ty]
    return main
)");
  auto a = random_array(ir::kFloat16, {20, 13}, 5);
  expect_near(call("transpose(20, 13)(x0)", {a}), 0, [&](int64_t i) { return a->at(i % 20 * 13 + i / 20); });
}

// Tile operators and loops of threads in one kernel: threads meet at each operator.
TEST_F(Threads, BetweenTileOperators) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def mixed(M, N, threads=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=threads) as bx:
            tx = T.get_thread_binding()
            rows = T.alloc_shared((4, N), "float32")
            least = T.alloc_fragment((4,), "float32")
            T.copy(A[bx * 4, 0], rows)
            for k in T.serial(N // threads):
                for r in T.serial(4):
                    rows[r, k * threads + tx] = rows[r, k * threads + tx] + tx
            T.reduce_min(rows, least, dim=1)
            for i, j in T.Parallel(4, N):
                rows[i, j] = rows[i, j] - least[i]
            T.copy(rows, B[bx * 4, 0])
    return main
)");
  auto a = random_array(ir::kFloat32, {7, 64}, 6);
  auto value = [&](int64_t r, int64_t c) { return a->at(r * 64 + c) + double(c % 32); };
  expect_near(call("mixed(7, 64)(x0)", {a}), 1e-5, [&](int64_t i) {
    double least = 1e9;
    for (int64_t c = 0; c < 64; ++c) least = std::min(least, value(i / 64, c));
    return value(i / 64, i % 64) - least;
  });
}

// `T.clear`, `T.fill` and `T.copy` of a local array are each thread's own.
TEST_F(Threads, TileOperatorsOnLocalArrays) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def gather(M, N, threads=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, threads), threads=threads) as bx:
            tx = T.thread_binding(0, threads, thread="threadIdx.x")
            part = T.alloc_local((4,), "float32")
            sums = T.alloc_local((4,), "float32")
            T.clear(sums)
            for k in T.serial(N // 4):
                T.copy(A[bx * threads + tx, k * 4], part)
                for j in T.vectorized(4):
                    sums[j] += part[j]
            if bx * threads + tx < M:
                B[bx * threads + tx] = sums[0] + sums[1] + sums[2] + sums[3]
    return main
)");
  auto a = random_array(ir::kFloat32, {19, 12}, 7);
  expect_near(call("gather(19, 12)(x0)", {a}), 1e-5, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 12; ++k) sum += a->at(i * 12 + k);
    return sum;
  });
}

// A thread that leaves its loop early leaves the loops of the others alone.
TEST_F(Threads, EachThreadLeavesItsOwnLoop) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def first_above(M, N, threads=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "int32")):
        with T.Kernel(T.ceildiv(M, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            row = bx * threads + tx
            found = T.alloc_var("int32")
            found = N
            if row < M:
                for k in T.serial(N):
                    if A[row, k] > 0.5:
                        found = k
                        break
                B[row] = found
    return main
)");
  auto a = random_array(ir::kFloat32, {21, 9}, 8);
  expect_near(call("first_above(21, 9)(x0)", {a}), 0, [&](int64_t i) {
    int64_t k = 0;
    while (k < 9 && a->at(i * 9 + k) <= 0.5) ++k;
    return double(k);
  });
}

TEST_F(Threads, BlocksAndExtents) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def where(M, N):
    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), B: T.Tensor((M, N), "int32")):
        with T.Kernel(M, threads=(N, 1)):
            by = T.get_block_binding()
            tx = T.get_thread_binding(0)
            B[by, tx] = by * 1000 + tx * T.get_thread_extent(0) + T.get_thread_binding(1) + T.get_thread_extents()[1]
    return main
)");
  auto a = testing::make_array(ir::kInt32, {1}, [](int64_t) { return 0; });
  expect_near(call("where(3, 5)(x0)", {a}), 0, [](int64_t i) { return double(i / 5 * 1000 + i % 5 * 5 + 1); });
}

TEST_F(Threads, fail_BarrierThatNotAllThreadsReach) {
  load(R"(
@tilelang.jit
def diverge(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            if tx < 3:
                A[tx] = 0.0
                T.sync_threads()
    return main
)");
  auto a = random_array(ir::kFloat32, {8}, 9);
  EXPECT_THAT(
      failure("diverge(8)(x0)", {a}),
      "unsupported_tile_feature: the threads of a block synchronise inside, but this condition differs between them");
}

TEST_F(Threads, fail_TileOperatorsAndThreadsOnOneBuffer) {
  load(R"(
def build(scope, write):
    @tilelang.jit
    @T.prim_func
    def main(A: T.Tensor((8, 4), "float32")):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            tile = scope((8, 4), "float32")
            most = scope((8,), "float32")
            if write:
                T.clear(tile)
                tile[tx, 0] = 1.0
            T.reduce_max(tile, most, dim=1)
            A[tx, 0] = most[tx]
    return main
)");
  auto a = random_array(ir::kFloat32, {8, 4}, 11);
  EXPECT_THAT(failure("build(T.alloc_fragment, True)(x0)", {a}), ::testing::HasSubstr("writes to the fragment `tile`"));
  EXPECT_THAT(failure("build(T.alloc_local, False)(x0)", {a}), ::testing::HasSubstr("an array of each thread's own"));
  EXPECT_THAT(failure("build(T.alloc_shared, True)(x0)", {a}), "");
}

TEST_F(Threads, fail_TileOperatorByThread) {
  load(R"(
@tilelang.jit
def scattered(N):
    @T.prim_func
    def main(A: T.Tensor((N, 4), "float32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            s = T.alloc_shared((4,), "float32")
            T.copy(A[tx, 0], s)
    return main
)");
  auto a = random_array(ir::kFloat32, {8, 4}, 10);
  EXPECT_THAT(failure("scattered(8)(x0)", {a}), ::testing::StartsWith("unsupported_tile_feature: all threads of the"));
}

}  // namespace
}  // namespace tilepilot::stage
