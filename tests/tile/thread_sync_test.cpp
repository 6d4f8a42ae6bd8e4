// Programs in which threads exchange elements of shared memory and leave the barriers to the compiler. Run through the
// CPU backend and the reference interpreter.
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class ThreadSync : public Run {
 protected:
  ThreadSync() : Run(checked_backend()) {}

  // A kernel of one block of 64 threads from x0[64] to an array of 64.
  Array run(const std::string& body, const Array& x) {
    load(R"(
@tilelang.jit(out_idx=[-1])
def build():
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            own = T.alloc_local((8,), "float32")
)" + body +
         "    return main\n");
    return call("build()(x0)", {x});
  }

  double sum(const Array& x, int64_t count = 64) {
    double result = 0;
    for (int64_t i = 0; i < count; ++i) result += x->at(i);
    return result;
  }

  const Array x_ = random_array(ir::kFloat32, {64}, 7);
};

TEST_F(ThreadSync, AnExchange) {
  const Array y = run(R"(
            s[tx] = X[tx]
            Y[tx] = s[63 - tx]
)",
                      x_);
  expect_near(y, 0, [&](int64_t i) { return x_->at(63 - i); });
}

TEST_F(ThreadSync, AnExchangeInALoop) {
  const Array y = run(R"(
            own[0] = X[tx]
            for r in T.serial(3):
                s[tx] = own[0]
                own[0] = s[63 - tx] + 1.0
            Y[tx] = own[0]
)",
                      x_);
  expect_near(y, 1e-6, [&](int64_t i) { return x_->at(63 - i) + 3; });
}

TEST_F(ThreadSync, OneThreadWritesForAll) {
  const Array y = run(R"(
            own[0] = 0.0
            for i in T.serial(4):
                if tx == 63:
                    s[0] = X[i]
                own[0] += s[0]
            Y[tx] = own[0]
)",
                      x_);
  expect_near(y, 1e-6, [&](int64_t) { return sum(x_, 4); });
}

TEST_F(ThreadSync, AWhileLoopThatReadsWhatItsBodyWrites) {
  const Array y = run(R"(
            if tx == 0:
                s[0] = 5.0
            own[0] = 0.0
            while s[0] > 0.5:
                own[0] += X[tx]
                if tx == 17:
                    s[0] = s[0] - 1.0
            Y[tx] = own[0]
)",
                      x_);
  expect_near(y, 1e-5, [&](int64_t i) { return 5 * x_->at(i); });
}

TEST_F(ThreadSync, ATreeWithoutBarriers) {
  const Array y = run(R"(
            s[tx] = X[tx]
            for step in T.serial(6):
                if tx < (32 >> step):
                    s[tx] = s[tx] + s[tx + (32 >> step)]
            Y[tx] = s[0]
)",
                      x_);
  expect_near(y, 1e-5, [&](int64_t) { return sum(x_); });
}

// Half of the tree above the warp is in step by a barrier, the rest because a warp runs in step.
TEST_F(ThreadSync, AWarpThatRunsInStep) {
  const Array y = run(R"(
            s[tx] = X[tx]
            T.sync_threads()
            if tx < 32:
                v = s[tx] + s[tx + 32]
                s[tx] = v
                s[tx] = s[tx] + s[tx + 16]
                T.sync_warp()
                if tx < 8:
                    s[tx] = s[tx] + s[tx + 8]
                    for k in T.serial(3):
                        s[tx] = s[tx] + s[tx + (4 >> k)]
            if tx == 0:
                for i in T.serial(64):
                    Y[i] = s[0]
)",
                      x_);
  expect_near(y, 1e-5, [&](int64_t) { return sum(x_); });
}

TEST_F(ThreadSync, BothSidesOfACondition) {
  const Array y = run(R"(
            s[tx] = X[tx]
            if tx < 32:
                own[0] = s[63 - tx]
                s[tx] = own[0] * 2.0
                own[1] = s[31 - tx]
            else:
                own[1] = s[tx]
            Y[tx] = own[1]
)",
                      x_);
  expect_near(y, 1e-6, [&](int64_t i) { return i < 32 ? 2 * x_->at(32 + i) : x_->at(i); });
}

TEST_F(ThreadSync, ALoopThatIsLeftEarly) {
  const Array y = run(R"(
            own[0] = X[tx]
            for r in T.serial(8):
                if r == 3:
                    break
                s[tx] = own[0]
                own[0] = s[(tx + 1) % 64]
            Y[tx] = own[0] + s[(tx + 5) % 64]
)",
                      x_);
  expect_near(y, 1e-6, [&](int64_t i) { return x_->at((i + 3) % 64) + x_->at((i + 7) % 64); });
}

TEST_F(ThreadSync, RowsByTwoAxesOfThreads) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def transpose(N):
    @T.prim_func
    def main(X: T.Tensor((N, N), "float16"), Y: T.Tensor((N, N), "float16")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(N, 16), threads=(16, 8)) as (bx, by):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            tile = T.alloc_shared((16, 17), "float16")
            for k in T.serial(2):
                tile[ty + k * 8, tx] = X[by * 16 + ty + k * 8, bx * 16 + tx]
            for k in T.serial(2):
                Y[bx * 16 + ty + k * 8, by * 16 + tx] = tile[tx, ty + k * 8]
    return main
)");
  auto x = random_array(ir::kFloat16, {48, 48}, 3);
  expect_near(call("transpose(48)(x0)", {x}), 0, [&](int64_t i) { return x->at(i % 48 * 48 + i / 48); });
}

}  // namespace
}  // namespace tilepilot::stage
