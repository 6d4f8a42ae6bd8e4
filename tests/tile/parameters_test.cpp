// How arguments meet the parameters of a program: extents that determine a size, strides, tensors that are left out,
// and types that `isinstance` knows. Run through the CPU backend and the reference interpreter.
#include <fmt/format.h>

#include <bit>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Parameters : public Run {
 protected:
  Parameters() : Run(checked_backend()) {}
};

TEST_F(Parameters, ALinearExtentDeterminesItsSize) {
  load(R"(
n = T.dynamic("n")

@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((n * 4, 3), "int32"), B: T.Tensor((n + 1,), "int32")):
    with T.Kernel(n + 1, threads=32) as b:
        B[b] = n * 100 + b

@tilelang.jit(out_idx=[-1])
@T.prim_func
def bounds(starts: T.Tensor((n + 1,), "int32"), B: T.Tensor((n,), "int32")):
    with T.Kernel(n, threads=32) as b:
        B[b] = starts[b + 1] - starts[b]

@tilelang.jit
@T.prim_func
def in_place(A: T.Tensor((n * 4,), "int32")):
    with T.Kernel(n, threads=32) as b:
        A[b * 4] = b
)");
  const Array a = random_array(ir::kInt32, {20, 3}, 1);
  const Array b = call("kernel(x0)", {a});
  ASSERT_EQ(b->size(), 6);
  expect_near(b, 0, [](int64_t i) { return static_cast<double>(500 + i); });
  EXPECT_EQ(failure("in_place(x0)", {random_array(ir::kInt32, {21}, 1)}),
            "bad_kernel_argument: axis 0 of argument `A` must be `n * 4`, got 21");
  const Array starts = testing::make_array(ir::kInt32, {4}, [](int64_t i) { return static_cast<double>(i * i); });
  const Array lengths = call("bounds(x0)", {starts});
  ASSERT_EQ(lengths->size(), 3);
  expect_near(lengths, 0, [](int64_t i) { return static_cast<double>(2 * i + 1); });
}

TEST_F(Parameters, SizesAskedForInLinearExtents) {
  load(R"(
@tilelang.jit
def kernel(A):
    N = T.const("N")
    A: T.Tensor[[N * 2], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(N, threads=32) as b:
        B[b] = A[2 * b] + A[2 * b + 1]
    return B
)");
  const Array a = random_array(ir::kFloat32, {12}, 1);
  expect_near(call("kernel(x0)", {a}), 1e-6, [&](int64_t i) { return a->at(2 * i) + a->at(2 * i + 1); });
  EXPECT_EQ(failure("kernel(x0)", {random_array(ir::kFloat32, {13}, 1)}),
            "bad_kernel_argument: axis 0 of `A` has extent 13, which is no `N * 2`");
}

TEST_F(Parameters, StridesOfPackedElementsMayBeKnownAtRunTime) {
  load(R"(
m, s, t = T.dynamic("m, s, t")

@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.StridedTensor[[m, 16], [s, 1], "int4"], B: T.Tensor((m, 16), "int32")):
    with T.Kernel(m, threads=32) as b:
        for i in T.Parallel(16):
            B[b, i] = A[b, i]

@tilelang.jit(out_idx=[-1])
@T.prim_func
def wide(A: T.StridedTensor[[m, 16], [t, 1], "float32"], B: T.Tensor((m, 16), "float32")):
    with T.Kernel(m, threads=32) as b:
        for i in T.Parallel(16):
            B[b, i] = A[b, i] + t
)");
  const Array a = testing::make_array(ir::kInt8, {3, 8}, [](int64_t i) { return static_cast<double>(i % 7 * 17); });
  expect_near(call("kernel(x0)", {a}), 0, [](int64_t at) { return static_cast<double>(at / 2 % 7); });
  const Array w = random_array(ir::kFloat32, {1, 16}, 1);
  expect_near(call("wide(x0)", {w}), 1e-5, [&](int64_t at) { return w->at(at) + 16; });
}

TEST_F(Parameters, TensorsThatNobodyTouchesMayBeLeftOut) {
  load(R"(
m = T.dynamic("m")

@tilelang.jit
def build(with_bias):
    @T.prim_func
    def main(A: T.Tensor((m,), "float32"), Bias: T.Tensor((m,), "float32"), C: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                C[i] = m
                if with_bias:
                    C[i] += Bias[i]
    return main
)");
  const Array a = random_array(ir::kFloat32, {6}, 1), c = random_array(ir::kFloat32, {4}, 2);
  ASSERT_EQ(failure("build(False)(x0, None, x1)", {a, c}), "");
  expect_near(c, 0, [](int64_t) { return 6.0; });
  ASSERT_EQ(failure("build(False)(None, x0, x1)", {a, c}), "");
  expect_near(c, 0, [](int64_t) { return 6.0; });
  ASSERT_EQ(failure("build(False)(None, None, x0)", {c}), "");
  expect_near(c, 0, [](int64_t) { return 0.0; });
  EXPECT_EQ(failure("build(True)(x0, None, x1)", {a, c}),
            "bad_kernel_argument: `Bias` of `main` must be a tensor, not `NoneType`");
}

TEST_F(Parameters, TensorsByTheirAddressBeforeTheKernel) {
  load(R"(
@tilelang.jit
@T.prim_func
def kernel(a: T.ptr, b: T.ptr, n: T.int32):
    A = T.make_tensor(a, (n,), "float32")
    B = T.make_tensor(b, (n,), "float32")
    with T.Kernel(T.ceildiv(n, 8), threads=8) as block:
        for i in T.Parallel(8):
            B[block * 8 + i] = A[block * 8 + i] * 2

@tilelang.jit
def eager(A: T.ptr, B: T.ptr, n: int):
    A = T.make_tensor(A, (n,), "float32")
    B = T.make_tensor(B, (n,), "float32")
    with T.Kernel(1, threads=8):
        for i in T.Parallel(n):
            B[i] = A[i] + 1
)");
  const Array a = random_array(ir::kFloat32, {21}, 1), b = random_array(ir::kFloat32, {21}, 2);
  ASSERT_EQ(failure("kernel(x0, x1, 21)", {a, b}), "");
  expect_near(b, 0, [&](int64_t i) { return a->at(i) * 2; });
  ASSERT_EQ(failure(fmt::format("kernel({}, x0, 21)", std::bit_cast<int64_t>(b->view.data)), {a}), "");
  expect_near(a, 0, [&](int64_t i) { return b->at(i) * 2; });
  ASSERT_EQ(failure("eager(x0, x1, 21)", {a, b}), "");
  expect_near(b, 1e-6, [&](int64_t i) { return a->at(i) + 1; });
}

TEST_F(Parameters, TypesThatIsinstanceKnows) {
  load(R"(
n = T.dynamic("n")
seen = []

@T.macro
def look(x):
    seen.append((isinstance(x, T.PrimExpr), isinstance(x, T.Var), isinstance(x, T.Buffer)))

@T.prim_func
def main(A: T.Tensor((n, 4), "float32")):
    with T.Kernel(1, threads=32) as b:
        look(A)
        look(A[0, 0] + 1)
        look(A.shape[0])
        look(A.shape[1])
)");
  EXPECT_TRUE(holds("seen[0] == (False, False, True)"));
  EXPECT_TRUE(holds("seen[1][0] and not seen[1][2]"));
  EXPECT_TRUE(holds("seen[2] == (True, True, False)"));
  EXPECT_TRUE(holds("seen[3] == (False, False, False)"));
  EXPECT_TRUE(holds("isinstance(n, T.Var) and not isinstance(4, T.Var) and isinstance(4, (int, T.PrimExpr))"));
  EXPECT_TRUE(
      holds("isinstance(main, T.PrimFunc) and isinstance(main, tilelang.PrimFunc) and not isinstance(n, "
            "T.PrimFunc)"));
}

TEST_F(Parameters, BuffersOfAnyScope) {
  load(R"(
@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        s = T.alloc_buffer((8,), "float32", scope="shared")
        T.copy(A, s)
        T.cumsum(s, dim=0, annotations={})
        T.copy(s, B)
)");
  const Array a = random_array(ir::kFloat32, {8}, 1);
  expect_near(call("kernel(x0)", {a}), 1e-5, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k <= i; ++k) sum += a->at(k);
    return sum;
  });
}

TEST_F(Parameters, PreviousValuesOfNeighbours) {
  load(R"(
@tilelang.jit
@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=2):
        tx = T.get_thread_binding(0)
        if tx == 0:
            C[0:2] = T.atomic_addx2(A[0], B[0], return_prev=True)
            last = T.atomic_addx2(A[2], B[2], return_prev=True)
            C[2] = last[0]
            C[3] = last[1]
        else:
            C[4:8] = T.atomic_addx4(A[4], B[4], return_prev=True)
)");
  const Array a = random_array(ir::kFloat32, {8}, 1), b = random_array(ir::kFloat32, {8}, 2),
              c = random_array(ir::kFloat32, {8}, 3);
  std::vector<double> before;
  for (int64_t i = 0; i < 8; ++i) before.push_back(a->at(i));
  ASSERT_EQ(failure("kernel(x0, x1, x2)", {a, b, c}), "");
  expect_near(c, 0, [&](int64_t i) { return before[static_cast<size_t>(i)]; });
  expect_near(a, 1e-6, [&](int64_t i) { return before[static_cast<size_t>(i)] + b->at(i); });
}

}  // namespace
}  // namespace tilepilot::stage
