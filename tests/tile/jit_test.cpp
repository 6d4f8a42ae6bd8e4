// How programs become kernels: what decides that a program is staged anew, sizes by keyword and by stride, outputs that
// a program makes itself, and functions whose dialect only shows when they run.
#include <gmock/gmock.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Jit : public Run {};

constexpr const char* kScale = R"(
@tilelang.jit
def scale(A, factor=2, block=16):
    N = T.const("N")
    B = T.empty((N,), "float32")
    A: T.Tensor[[N], "float32"]
    with T.Kernel(T.ceildiv(N, block)) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * factor
    return B
)";

TEST_F(Jit, SizesComeFromKeywordsInPlaceOfTensors) {
  load(kScale);
  auto a = random_array(ir::kFloat32, {40}, 1);
  expect_near(call("scale.compile(N=40, factor=3)(x0)", {a}), 1e-6, [&](int64_t i) { return a->at(i) * 3; });
  EXPECT_EQ(staged_, 1);
  EXPECT_THAT(failure("scale.compile(N=40)(x0)", {random_array(ir::kFloat32, {41}, 1)}),
              HasSubstr("bad_kernel_argument"));
  EXPECT_THAT(failure("scale.compile()", {}), HasSubstr("nothing says what the size `N` is"));
  EXPECT_THAT(failure("scale.compile(N='40')", {}), HasSubstr("unexpected keyword argument 'N'"));
}

TEST_F(Jit, ConfigurationsAreCompiledTogether) {
  load(kScale);
  auto a = random_array(ir::kFloat32, {40}, 2);
  EXPECT_TRUE(holds("len(scale.par_compile([dict(N=40), dict(N=40, block=8)])) == 2"));
  EXPECT_EQ(staged_, 2);
  expect_near(call("tilelang.compile(scale.get_tir(N=40, block=8))(x0)", {a}), 1e-6,
              [&](int64_t i) { return a->at(i) * 2; });
  EXPECT_EQ(staged_, 2);
}

TEST_F(Jit, StridesAreSizesToo) {
  load(R"(
@tilelang.jit
def rows(A):
    M, N, stride = T.const("M, N, stride")
    A: T.StridedTensor((M, N), (stride, 1), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(M) as row:
        for j in T.Parallel(N):
            B[row, j] = A[row, j] + stride
    return B
)");
  auto a = random_array(ir::kFloat32, {4, 8}, 3);
  expect_near(call("rows(x0)", {a}), 1e-6, [&](int64_t i) { return a->at(i) + 8; });
  auto narrow = random_array(ir::kFloat32, {4, 8}, 3);
  narrow->view.shape[1] = 6;
  expect_near(call("rows(x0)", {narrow}), 1e-6, [&](int64_t i) { return narrow->at(i / 6 * 8 + i % 6) + 8; });
  EXPECT_EQ(staged_, 2);
}

TEST_F(Jit, EqualContainersAreEqualArguments) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def fill(config, names):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            T.fill(A, config["value"])
    return main
)");
  const std::string is_same = " is fill({'value': 1, 'more': [1, {2, 3}]}, {'a', 'b'})";
  EXPECT_TRUE(holds("fill({'value': 1, 'more': [1, {2, 3}]}, {'a', 'b'})" + is_same));
  EXPECT_TRUE(holds("fill({'more': [1, {3, 2}], 'value': 1}, {'b', 'a'})" + is_same));
  EXPECT_FALSE(holds("fill({'value': 1, 'more': [1, {2, 4}]}, {'a', 'b'})" + is_same));
  EXPECT_FALSE(holds("fill({'value': 1.0, 'more': [1, {2, 3}]}, {'a', 'b'})" + is_same));
}

TEST_F(Jit, AProgramMayMakeItsOutputs) {
  load(R"(
@tilelang.jit
def divide(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        low, high = T.empty((N // 2,), "float32"), T.empty((N // 2,), "float32")
        with T.Kernel(threads=32):
            for i in T.Parallel(N // 2):
                low[i] = A[i]
                high[i] = A[N // 2 + i]
        return high, low
    return main
)");
  auto a = random_array(ir::kFloat32, {8}, 4);
  expect_near(call("divide(8)(x0)[0]", {a}), 0, [&](int64_t i) { return a->at(4 + i); });
  expect_near(call("divide(8)(A=x0)[1]", {a}), 0, [&](int64_t i) { return a->at(i); });
  EXPECT_THAT(failure("divide(8)(B=x0)", {a}), HasSubstr("lacks its argument `A`"));
  EXPECT_THAT(failure("divide(8)(x0, A=x0)", {a}), HasSubstr("given twice"));
}

// The kernel stands in a function that the decorated one calls.
TEST_F(Jit, TheDialectMayOnlyShowWhenTheFunctionRuns) {
  load(R"(
def work(A, B, n):
    with T.Kernel(1) as bx:
        for i in T.Parallel(n):
            B[i] = A[i] + 1

@tilelang.jit
def add(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), n=8):
    work(A, B, n)

@tilelang.jit
def fails(n):
    T.copy(n, n)
)");
  auto a = random_array(ir::kFloat32, {8}, 5), b = random_array(ir::kFloat32, {8}, 6);
  EXPECT_EQ(failure("add(x0, x1)", {a, b}), "");
  EXPECT_EQ(failure("add(x0, x1)", {a, b}), "");
  expect_near(b, 1e-6, [&](int64_t i) { return a->at(i) + 1; });
  EXPECT_EQ(staged_, 1);
  EXPECT_THAT(failure("fails(1)", {}), HasSubstr("outside_kernel"));
}

TEST_F(Jit, MacrosTakeValues) {
  load(R"(
@T.macro
def bumped(x):
    x = x + 1
    return x

@T.macro
def bump(x: T.Ref):
    x = x + 1

@tilelang.jit(out_idx=[-1])
def count():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            v = T.alloc_var("int32", init=3)
            A[0] = bumped(v)
            A[1] = v
            bump(v)
            A[2] = v
            A[3] = 7
            for i in range(3):
                bump(A[3])
    return main
)");
  auto a = call("count()()", {});
  EXPECT_EQ(std::vector<double>({a->at(0), a->at(1), a->at(2), a->at(3)}), (std::vector<double>{4, 3, 4, 10}));
}

// The other names under which upstream compiles programs, and tuning where nothing is tuned.
class JitNames : public Run {
 protected:
  void load_program() {
    load(R"(
from tilelang.jit import JITKernel, compile as compile_program, jit
from tilelang.autotuner import autotune

@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = A[i] * 2

def configs():
    return [dict(block=4, stages=1), dict(block=8, stages=2)]

@tilelang.autotune(configs=configs(), warmup=3, rep=20)
@tilelang.jit(out_idx=[-1])
def tuned(N, block=None, stages=None):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + block * 10 + stages
    return main

@autotune(configs=lambda *a, **k: configs())
@jit(out_idx=[-1])
def lazily(N, block=None, stages=None):
    return tuned.func(N, block, stages)
)");
  }
  void expect_added(const std::string& expression, double added) {
    const Array a = random_array(ir::kFloat32, {8}, 1);
    expect_near(call(expression, {a}), 1e-5, [&](int64_t i) { return a->at(i) + added; });
  }
};

TEST_F(JitNames, ProgramsAreCompiledUnderEachOfThem) {
  load_program();
  const Array a = random_array(ir::kFloat32, {8}, 1);
  for (const char* form : {"tilelang.JITKernel(double, out_idx=[1], target='cuda')", "JITKernel(double, [1])",
                           "tilelang.jit.JITKernel(double, out_idx=-1)", "tilelang.cached(double, [1])",
                           "compile_program(double, out_idx=[1])", "tilelang.cached(double, [1]).torch_function"})
    expect_near(call(std::string(form) + "(x0)", {a}), 0, [&](int64_t i) { return a->at(i) * 2; });
  EXPECT_TRUE(holds("isinstance(tilelang.compile(double, out_idx=[1]), JITKernel)"));
}

TEST_F(JitNames, fail_AHostSourceIsNowhere) {
  load_program();
  EXPECT_THAT(failure("tilelang.compile(double).get_host_source()", {}), HasSubstr("there is no host source"));
}

TEST_F(JitNames, WhereNothingIsTunedTheFirstConfigurationIsTaken) {
  load_program();
  expect_added("tuned(8)(x0)", 41);
  expect_added("lazily(8)(x0)", 41);
  expect_added("tuned(8, block=8)(x0)", 81);
  expect_added("tuned(8, 8, 5)(x0)", 85);
  EXPECT_EQ(interpreter_.diagnostics().items().front().message,
            "nothing is tuned here: the first configuration is taken");
}

TEST_F(JitNames, fail_TuningWithoutConfigurations) {
  load_program();
  EXPECT_THAT(failure("tilelang.autotune(tuned)", {}), HasSubstr("needs its configurations"));
  EXPECT_THAT(failure("tilelang.autotune(configs=[])(jit(lambda N: N))", {}), HasSubstr("tilelang"));
}

}  // namespace
}  // namespace tilepilot::stage
