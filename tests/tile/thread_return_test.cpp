// `T.thread_return()`, run through the CPU backend and the reference interpreter.
#include <gmock/gmock.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class ThreadReturn : public Run {
 protected:
  ThreadReturn() : Run(checked_backend()) {}

  // Adds to Y, whose element each of two blocks of 32 threads has at `i`.
  void load_kernel(const std::string& body) {
    load(R"(
@tilelang.jit
def build(N=50):
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as block:
            tx = T.get_thread_binding()
            i = block * 32 + tx
)" + body +
         "    return main\n");
  }

  void expect_sums(const std::function<double(int64_t, double)>& added) {
    const Array x = random_array(ir::kFloat32, {64}, 1), y = random_array(ir::kFloat32, {64}, 2);
    const Array before = random_array(ir::kFloat32, {64}, 2);
    call("build()(x0, x1) or x1", {x, y});
    expect_near(y, 1e-4, [&](int64_t i) { return before->at(i) + added(i, x->at(i)); });
  }
};

TEST_F(ThreadReturn, LeavesTheRestToOthers) {
  load_kernel(R"(
            if i >= N:
                T.thread_return()
            own = T.alloc_local((1,), "float32")
            own[0] = X[i] * 2.0
            Y[i] += own[0]
)");
  expect_sums([](int64_t i, double x) { return i < 50 ? 2 * x : 0; });
}

TEST_F(ThreadReturn, MayStandInBothBranchesAndDeepInOne) {
  load_kernel(R"(
            if tx < 16:
                if tx % 2 == 0:
                    Y[i] += 1.0
                    T.thread_return()
                Y[i] += 2.0
            else:
                if tx > 20:
                    T.thread_return()
            Y[i] += 4.0
)");
  expect_sums([](int64_t i, double) {
    const int64_t tx = i % 32;
    if (tx < 16) return tx % 2 == 0 ? 1.0 : 6.0;
    return tx > 20 ? 0.0 : 4.0;
  });
}

TEST_F(ThreadReturn, EndsLoopsToo) {
  load_kernel(R"(
            for k in T.serial(8):
                for m in T.unroll(2):
                    if k * 2 + m == tx:
                        Y[i] += 100.0
                        T.thread_return()
                    Y[i] += 1.0
            Y[i] += 1000.0
)");
  expect_sums([](int64_t i, double) { return i % 32 < 16 ? 100.0 + i % 32 : 1016.0; });
}

TEST_F(ThreadReturn, OfAllThreadsEndsTheBlock) {
  load_kernel(R"(
            shared = T.alloc_shared((32,), "float32")
            T.copy(X[block * 32], shared)
            if block == 1:
                T.thread_return()
                Y[i] += 7.0
            T.sync_threads()
            Y[i] += shared[31 - tx] - X[block * 32 + 31 - tx] + 3.0
)");
  expect_sums([](int64_t i, double) { return i < 32 ? 3.0 : 0.0; });
}

TEST_F(ThreadReturn, StandsInNoParallelLoop) {
  load_kernel("            for j in T.Parallel(32):\n                T.thread_return()\n");
  const Array x = random_array(ir::kFloat32, {64}, 1);
  EXPECT_THAT(failure("build()(x0, x0)", {x}), HasSubstr("inside a parallel or vectorized loop"));
}

}  // namespace
}  // namespace tilepilot::stage
