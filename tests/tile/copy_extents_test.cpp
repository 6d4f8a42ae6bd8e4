// Copies and fills whose extents differ from side to side or are known only when the kernel runs. Run through the CPU
// backend and the reference interpreter.
#include <fmt/format.h>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class CopyExtents : public Run {
 protected:
  CopyExtents() : Run(checked_backend()) {}
};

TEST_F(CopyExtents, TheSideCloserToTheThreadsCounts) {
  load(R"(
@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((8, 6), "float32"), B: T.Tensor((8, 6), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((8, 5), "float32")
        f = T.alloc_fragment((8, 5), "float32")
        T.fill(s, -1)
        T.copy(A[:, :2], s[:, :3])
        T.copy(s[:, :4], f)
        T.copy(f, B[:, 1:3])
        for i in T.Parallel(8):
            B[i, 0] = 0
)");
  const Array a = random_array(ir::kFloat32, {8, 6}, 1);
  expect_near(call("kernel(x0)", {a}), 0, [&](int64_t at) {
    const int64_t i = at / 6, j = at % 6;
    return j == 0 ? 0 : j <= 3 ? a->at(i * 6 + j - 1) : -1;
  });
}

TEST_F(CopyExtents, ALongerSliceOfGlobalMemoryIsReadAsFarAsTheTileReaches) {
  load(R"(
n = T.dynamic("n")

@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((64,), "float32")
        T.copy(A[0:n], s)
        T.copy(s, B)
)");
  for (const int64_t length : {1, 40, 64, 100}) {
    const Array a = random_array(ir::kFloat32, {length}, 2);
    expect_near(call("kernel(x0)", {a}), 0, [&](int64_t i) { return i < length ? a->at(i) : 0; });
  }
}

TEST_F(CopyExtents, ExtentsOfBothSidesMayBeKnownOnlyAtRunTime) {
  load(R"(
n = T.dynamic("n")

@tilelang.jit(out_idx=[-1])
@T.prim_func
def kernel(A: T.Tensor((n,), "float16"), B: T.Tensor((n,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((64,), "float16")
        T.clear(B)
        T.fill(s, 9)
        T.copy(A[1:n], s[1:n])
        T.copy(s[0 : n // 2], B[0 : n // 2])
)");
  for (const int64_t length : {2, 50, 150}) {
    const Array a = random_array(ir::kFloat16, {length}, 3);
    expect_near(call("kernel(x0)", {a}), 0, [&](int64_t i) {
      if (i >= length / 2) return 0.0;
      return i == 0 ? 9.0 : i < 64 ? a->at(i) : 0.0;
    });
  }
}

TEST_F(CopyExtents, FillsOfAnyExtent) {
  load(R"(
n = T.dynamic("n")

@tilelang.jit
@T.prim_func
def kernel(B: T.Tensor((n, 4), "int32"), first: T.int32, last: T.int32):
    with T.Kernel(1, threads=32):
        a, b = T.alloc_var("int32", first), T.alloc_var("int32", last)
        T.fill(B, 1)
        T.fill(B[a:b, 1:3], 7)
)");
  const Array b = testing::make_array(ir::kInt32, {10, 4}, [](int64_t) { return 0.0; });
  ASSERT_EQ(failure("kernel(x0, 2, 7)", {b}), "");
  expect_near(b, 0, [](int64_t at) {
    const bool inside = at / 4 >= 2 && at / 4 < 7 && at % 4 >= 1 && at % 4 < 3;
    return inside ? 7.0 : 1.0;
  });
  ASSERT_EQ(failure("kernel(x0, 3, 3)", {b}), "");
  expect_near(b, 0, [](int64_t) { return 1.0; });
}

TEST_F(CopyExtents, fail_ATileIsTooSmallOrHasMoreAxes) {
  load(R"(
def build(rows):
    @T.prim_func
    def main(A: T.Tensor((8, 4), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((2, 4), "float32")
            T.copy(A[0:rows, :], s)
    return main
)");
  EXPECT_EQ(failure("build(2)", {}), "");
  EXPECT_EQ(failure("build(1)", {}),
            "shape_mismatch: `T.copy` between unequal extents: source `A` (1x4), destination "
            "`s` (2x4)");
  EXPECT_EQ(failure("build(3)", {}),
            "shape_mismatch: `T.copy` between unequal extents: source `A` (3x4), destination "
            "`s` (2x4)");
}

// Negative indices that begin a copied region are told where the region then leaves its tensor, and only there.
TEST_F(CopyExtents, ARegionThatBeginsNearTheEndIsToldWhereItLeavesTheTensor) {
  const std::pair<const char*, size_t> copies[] = {
      {"T.copy(X[0, -3], tile)", 1},
      {"T.copy(X[-1, -3], tile)", 1},
      {"T.copy(X[0, -PAD], tile)", 1},
      {"T.copy(X[0, -100], tile)", 1},
      {"T.copy(tile, X[0, -3])", 1},
      {"T.copy(S[0, -3], tile)", 1},
      {"T.async_copy(X[0, -3], tile)", 1},
      {"T.atomic_add(X[0, -3], tile)", 1},
      {"x = X[0, -3]\n        T.copy(x, tile)", 1},
      {"T.copy(X[-3, -1], T.reshape(tile, (4, 2)))", 2},
      // These end where the tensor does, or before.
      {"T.copy(X[0, -8], tile)", 0},
      {"T.copy(X[-1, 0], tile)", 0},
      {"T.copy(S[-1, 0], tile)", 0},
      {"T.copy(X[0, -3:], tile[0:3])", 0},
      {"T.copy(X[0, -3:-1], tile[0:2])", 0},
      {"T.copy(tile[-4:], X[0, 0:4])", 0},
      // These are no literals, no starts, or no regions.
      {"T.copy(X[0, b - 3], tile)", 0},
      {"T.copy(X[0, [5, 4][-1]], tile)", 0},
      {"T.reduce_sum(tile, one, dim=-1)", 0},
      {"one[0] = X[0, -3]", 0},
      {"T.fill(tile[-3:], 0)", 0},
  };
  for (const auto& [copy, count] : copies) {
    interpreter_.diagnostics() = {};
    load(fmt::format(R"(
PAD = 3
n = T.dynamic("n")

@T.prim_func
def kernel(X: T.Tensor((4, 64), "float32"), S: T.Tensor((4, n), "float32")):
    with T.Kernel(1, threads=32) as b:
        tile = T.alloc_shared((8,), "float32")
        one = T.alloc_fragment((1,), "float32")
        T.clear(tile)
        {}
)",
                     copy));
    size_t told = 0;
    for (const Diagnostic& warning : interpreter_.diagnostics().items())
      told += warning.kind == DiagnosticKind::begins_near_end;
    EXPECT_EQ(told, count) << copy << "\n" << render(sources_, interpreter_.diagnostics());
  }
}

}  // namespace
}  // namespace tilepilot::stage
