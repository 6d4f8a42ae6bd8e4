// Shuffles, votes and reductions of warps, and predicates of tiles, run through the CPU backend.
#include <gmock/gmock.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Warps : public Run {
 protected:
  Warps() : Run(checked_backend()) {}
};

constexpr const char* kShuffles = R"(
@tilelang.jit
def shuffled(A, which, by, width):
    A: T.Tensor[[96], "float32"]
    B = T.empty([96], "float32")
    with T.Kernel(1, threads=96):
        tx = T.get_thread_binding()
        if which == "from":
            B[tx] = T.shfl_sync(A[tx], by, width)
        elif which == "xor":
            B[tx] = T.shfl_xor(A[tx], by, width=width)
        elif which == "up":
            B[tx] = T.shfl_up(A[tx], by, width, 0xffffffff)
        elif which == "down":
            B[tx] = T.tvm_warp_shuffle_down(0xffffffff, A[tx], by, width, 32)
        elif which == "lane":
            B[tx] = T.tvm_warp_shuffle(0xffffffff, A[tx], (tx + by) % 32, width, 32)
    return B
)";

TEST_F(Warps, Shuffles) {
  load(kShuffles);
  auto a = random_array(ir::kFloat32, {96}, 1);
  const auto expect = [&](const char* call_, auto source) {
    expect_near(call(call_, {a}), 0, [&](int64_t i) { return a->at(i / 32 * 32 + source(i % 32)); });
  };
  expect("shuffled(x0, 'from', 3, 32)", [](int64_t) { return 3; });
  expect("shuffled(x0, 'from', 11, 8)", [](int64_t lane) { return lane / 8 * 8 + 3; });
  expect("shuffled(x0, 'lane', 5, 32)", [](int64_t lane) { return (lane + 5) % 32; });
  expect("shuffled(x0, 'xor', 16, 32)", [](int64_t lane) { return lane ^ 16; });
  expect("shuffled(x0, 'xor', 5, 4)", [](int64_t lane) { return (lane ^ 5) < lane / 4 * 4 + 4 ? lane ^ 5 : lane; });
  expect("shuffled(x0, 'up', 3, 32)", [](int64_t lane) { return lane >= 3 ? lane - 3 : lane; });
  expect("shuffled(x0, 'down', 2, 16)", [](int64_t lane) { return lane % 16 < 14 ? lane + 2 : lane; });
  EXPECT_THAT(failure("shuffled(x0, 'xor', 1, 12)", {a}), HasSubstr("over segments of 12 lanes"));
}

TEST_F(Warps, FindEqualValues) {
  load(R"(
@tilelang.jit
def matched(A, extern):
    A: T.Tensor[[64], "int32"]
    B = T.empty([64], "uint32")
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        if extern:
            B[tx] = T.call_extern("uint32", "__match_any_sync", 0xffffffff, A[tx])
        else:
            B[tx] = T.match_any_sync(A[tx])
    return B
)");
  const Array a = testing::make_array(ir::kInt32, {64}, [](int64_t i) { return i % 7 * (i / 32 + 1) % 5; });
  for (const char* call_ : {"matched(x0, False)", "matched(x0, True)"})
    expect_near(call(call_, {a}), 0, [&](int64_t i) {
      double bits = 0;
      for (int64_t lane = 0; lane < 32; ++lane)
        if (a->at(i / 32 * 32 + lane) == a->at(i)) bits += static_cast<double>(int64_t{1} << lane);
      return bits;
    });
}

// A sum of a block as people write it: within warps, then by the first warp alone.
TEST_F(Warps, ASumInTwoSteps) {
  load(R"(
@tilelang.jit
def total(A, N):
    A: T.Tensor[[3, 200], "float32"]
    B = T.empty([3], "float32")
    with T.Kernel(3, threads=N) as row:
        partial = T.alloc_shared((32,), "float32")
        sum = T.alloc_var("float32", init=0.0)
        for tx in T.thread_binding(0, N, thread="threadIdx.x"):
            for k in T.serial(T.ceildiv(200, N)):
                if k * N + tx < 200:
                    sum = sum + A[row, k * N + tx]
            for step in T.unroll(5):
                sum = sum + T.shfl_xor(sum, 1 << step)
            if T.get_lane_idx() == 0:
                partial[T.get_warp_idx()] = sum
            T.sync_threads()
            if tx < 32:
                sum = T.if_then_else(tx < N // 32, partial[tx], 0.0)
                sum = T.warp_reduce_sum(sum)
                if T.shuffle_elect(0):
                    B[row] = sum
    return B
)");
  auto a = random_array(ir::kFloat32, {3, 200}, 2);
  for (const char* style : {"total(x0, 32)", "total(x0, 64)", "total(x0, 128)"})
    expect_near(call(style, {a}), 1e-4, [&](int64_t row) {
      double sum = 0;
      for (int64_t k = 0; k < 200; ++k) sum += a->at(row * 200 + k);
      return sum;
    });
}

TEST_F(Warps, VotesAndReductions) {
  load(R"(
@tilelang.jit
def voted(A):
    A: T.Tensor[[80], "int32"]
    B = T.empty([11, 80], "int64")
    with T.Kernel(1, threads=80):
        tx = T.get_thread_binding()
        v = A[tx]
        B[0, tx] = T.any_sync(v > 90)
        B[1, tx] = T.all_sync(v >= 0, mask=0xffffffff)
        B[2, tx] = T.cast(T.ballot(v % 2), "int64")
        B[3, tx] = T.cast(T.activemask(), "int64")
        B[4, tx] = T.syncthreads_count(v > 50)
        B[5, tx] = T.syncthreads_and(v < 100)
        B[6, tx] = T.syncthreads_or(v == 1000)
        B[7, tx] = T.warp_reduce_max(v)
        B[8, tx] = T.warp_reduce_min(v)
        B[9, tx] = T.warp_reduce_bitand(v)
        B[10, tx] = T.warp_reduce_bitor(v)
    return B
)");
  auto a = testing::make_array(ir::kInt32, {80}, [](int64_t i) { return double(i * 37 % 97 - (i == 70 ? 80 : 0)); });
  const auto b = call("voted(x0)", {a});
  ASSERT_TRUE(b);
  for (int64_t i = 0; i < 80; ++i) {
    const int64_t first = i / 32 * 32, past = std::min<int64_t>(first + 32, 80);
    int64_t any = 0, all = 1, ballot = 0, count = 0, most = INT32_MIN, least = INT32_MAX, both = -1, either = 0;
    for (int64_t k = 0; k < 80; ++k) count += a->at(k) > 50;
    for (int64_t k = first; k < past; ++k) {
      const auto v = static_cast<int64_t>(a->at(k));
      any |= v > 90;
      all &= v >= 0;
      ballot |= v % 2 != 0 ? int64_t{1} << (k - first) : 0;
      most = std::max(most, v);
      least = std::min(least, v);
      both &= v;
      either |= v;
    }
    const int64_t expected[] = {any,   all,  ballot, (int64_t{1} << (past - first)) - 1, count, 1, 0, most,
                                least, both, either};
    for (int64_t row = 0; row < 11; ++row)
      EXPECT_EQ(b->at(row * 80 + i), static_cast<double>(expected[row])) << row << ", " << i;
  }
}

TEST_F(Warps, PredicatesOfTiles) {
  load(R"(
@tilelang.jit
def sparse(A, M):
    A: T.Tensor[[8, 16], "float32"]
    M: T.Tensor[[8, 4], "bool"]
    B = T.empty([8], "float32")
    with T.Kernel(8, threads=32) as row:
        mask = T.alloc_shared((4,), "bool")
        x = T.alloc_shared((16,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(M[row, 0], mask)
        T.copy(A[row, 0], x)
        T.clear(total)
        if T.any_of(mask):
            T.reduce_sum(x, total, dim=0)
            if T.all_of(mask[0:2]):
                total[0] = total[0] + 100.0
        B[row] = total[0]
    return B
)");
  auto a = random_array(ir::kFloat32, {8, 16}, 3);
  auto m = testing::make_array(ir::kBool, {8, 4}, [](int64_t i) { return double((i / 4) >> (i % 4) & 1); });
  expect_near(call("sparse(x0, x1)", {a, m}), 1e-4, [&](int64_t row) {
    double sum = row % 4 == 3 ? 100 : 0;
    for (int64_t k = 0; row > 0 && k < 16; ++k) sum += a->at(row * 16 + k);
    return sum;
  });
}

TEST_F(Warps, Errors) {
  load(R"(
def build(which):
    @tilelang.jit
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if which == "float vote":
                A[tx] = T.any_sync(A[tx])
            elif which == "float bits":
                A[tx] = T.warp_reduce_bitor(A[tx])
            elif which == "half a warp":
                if tx < 16:
                    A[tx] = T.shfl_xor(A[tx], 1)
            elif which == "data":
                if A[0] > 0.0:
                    if A[tx] > 0.0:
                        A[tx] = T.shfl_xor(A[tx], 1)
            elif which == "lazy":
                A[tx] = A[tx] if A[tx] > 0.0 else T.shfl_xor(A[tx], 1)
            elif which == "parallel":
                for i in T.Parallel(64):
                    A[i] = T.shfl_xor(A[i], 1)
    return main
)");
  auto a = random_array(ir::kFloat32, {64}, 4);
  EXPECT_THAT(failure("build('float vote')(x0)", {a}), HasSubstr("asks for an integer or a bool"));
  EXPECT_THAT(failure("build('float bits')(x0)", {a}), HasSubstr("does not reduce float32"));
  EXPECT_THAT(failure("build('half a warp')(x0)", {a}), HasSubstr("the threads of a warp synchronise here"));
  EXPECT_THAT(failure("build('data')(x0)", {a}), HasSubstr("this condition differs"));
  EXPECT_THAT(failure("build('lazy')(x0)", {a}), HasSubstr("takes effect where it may not have to run"));
  EXPECT_THAT(failure("build('parallel')(x0)", {a}), HasSubstr("inside a parallel"));
}

}  // namespace
}  // namespace tilepilot::stage
