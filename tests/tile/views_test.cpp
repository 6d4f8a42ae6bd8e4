// Views of buffers, workspaces, and element types of 8 bits.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Views : public Run {};

// A write through one name is seen through the other, whatever passes run between.
TEST_F(Views, ReshapedTilesAreTheSameMemory) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def twice(scope):
    @T.prim_func
    def main(A: T.Tensor((8, 16), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64) as _:
            tile = T.alloc_shared((8, 16), "float32") if scope == "shared" else T.alloc_fragment((8, 16), "float32")
            flat = T.reshape(tile, (128,))
            T.copy(A, tile)
            for i in T.Parallel(128):
                flat[i] = flat[i] * 2.0
            for i, j in T.Parallel(8, 16):
                tile[i, j] = tile[i, j] + 1.0
            T.copy(flat, B)
    return main
)");
  auto a = random_array(ir::kFloat32, {8, 16}, 1);
  for (const char* scope : {"shared", "fragment"})
    expect_near(call(std::string("twice('") + scope + "')(x0)", {a}), 1e-6,
                [&](int64_t i) { return a->at(i) * 2 + 1; });
}

TEST_F(Views, BitsOfAnotherType) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def low_halves():
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32) as _:
            s = T.alloc_shared((32,), "int32")
            bytes = T.view(s, (32, 4), "uint8")
            T.copy(A, s)
            for i in T.Parallel(32):
                B[i] = T.cast(bytes[i, 1], "int32")
    return main
)");
  auto a = testing::make_array(ir::kInt32, {32}, [](int64_t i) { return double(i * 1000); });
  expect_near(call("low_halves()(x0)", {a}), 0, [&](int64_t i) { return double(i * 1000 / 256 % 256); });
}

TEST_F(Views, TensorsUnderAnotherShape) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def flat_gemm(N):
    @T.prim_func
    def main(A: T.Tensor((16, 2, 8), "float32"), W: T.Tensor((2, 8, N), "float32"), C: T.Tensor((16, N), "float32")):
        with T.Kernel(1, threads=64) as _:
            weights = T.Tensor((16, N), "float32", W.data)
            rows = T.reshape(A, (16, 16))
            a = T.alloc_shared((16, 16), "float32")
            b = T.alloc_shared((16, N), "float32")
            c = T.alloc_fragment((16, N), "float32")
            T.copy(rows, a)
            T.copy(weights[0, 0], b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)
    return main

@tilelang.jit(out_idx=[-1])
def too_small():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((16,), "float32")
            v = T.view(s, (16,), "float16")
            T.copy(s, C)
    return main
)");
  auto a = random_array(ir::kFloat32, {16, 2, 8}, 2), w = random_array(ir::kFloat32, {2, 8, 32}, 3);
  expect_near(call("flat_gemm(32)(x0, x1)", {a, w}), 1e-5, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 16; ++k) sum += a->at(i / 32 * 16 + k) * w->at(k * 32 + i % 32);
    return sum;
  });
  EXPECT_THAT(failure("too_small()(x0)", {random_array(ir::kFloat32, {16}, 4)}),
              HasSubstr("`T.view` cannot see `s` as float16[16]: it is float32[16]"));
}

// Partial sums of blocks in global memory that no argument is.
TEST_F(Views, WorkspacesOutliveALaunch) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def total(N, blocks):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((1,), "float32")):
        partial = T.alloc_global((blocks,), "float32")
        with T.Kernel(blocks, threads=32) as bx:
            f = T.alloc_fragment((N // blocks,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A[bx * (N // blocks)], f)
            T.reduce_sum(f, s)
            partial[bx] = s[0]
        with T.Kernel(1, threads=32) as _:
            f = T.alloc_fragment((blocks,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(partial, f)
            T.reduce_sum(f, s)
            B[0] = s[0]
    return main
)");
  auto a = random_array(ir::kFloat32, {256}, 5);
  double sum = 0;
  for (int64_t i = 0; i < 256; ++i) sum += a->at(i);
  expect_near(call("total(256, 8)(x0)", {a}), 1e-5, [&](int64_t) { return sum; });
}

// Every value of 8 bits there and back, and conversions that saturate.
TEST_F(Views, FloatsOfEightBits) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def there(dtype):
    @T.prim_func
    def main(A: T.Tensor((256,), "uint8"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((256,), "uint8")
            f = T.view(s, dtype=dtype)
            T.copy(A, s)
            T.copy(f, B)
    return main

@tilelang.jit(out_idx=[-1])
def back(dtype):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "uint8")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((256,), "uint8")
            f = T.view(s, dtype=dtype)
            T.copy(A, f)
            T.copy(s, B)
    return main
)");
  auto bits = testing::make_array(ir::kUInt8, {256}, [](int64_t i) { return double(i); });
  auto e4m3 = call("there('float8_e4m3fn')(x0)", {bits}), e5m2 = call("there(T.float8_e5m2)(x0)", {bits});
  ASSERT_TRUE(e4m3 && e5m2);
  EXPECT_EQ(e4m3->at(0x7e), 448);
  EXPECT_EQ(e4m3->at(0x01), std::ldexp(1, -9));
  EXPECT_EQ(e4m3->at(0xb8), -1);
  EXPECT_TRUE(std::isnan(e4m3->at(0x7f)));
  EXPECT_EQ(e5m2->at(0x7b), 57344);
  EXPECT_EQ(e5m2->at(0x01), std::ldexp(1, -16));
  EXPECT_TRUE(std::isinf(e5m2->at(0x7c)));
  auto again = call("back('float8_e4m3')(x0)", {e4m3});
  for (int64_t i = 0; i < 256; ++i) EXPECT_TRUE(std::isnan(e4m3->at(i)) || again->at(i) == double(i)) << i;
  auto wide = testing::make_array(ir::kFloat32, {256}, [](int64_t i) {
    return i == 0 ? 1e9 : i == 1 ? -INFINITY : 17;
  });
  auto saturated = call("back('float8_e4m3')(x0)", {wide});
  ASSERT_TRUE(saturated);
  EXPECT_EQ(saturated->at(0), 0x7e);
  EXPECT_EQ(saturated->at(1), 0xfe);
  EXPECT_EQ(saturated->at(2), 0x58);  // 17 lies between 16 and 18: to even
}

TEST_F(Views, OfDynamicSizes) {
  load(R"(
@tilelang.jit
def build():
    n, k = T.dynamic("n"), T.dynamic("k")
    @T.prim_func
    def main(X: T.Tensor((n, k), "float32"), Y: T.Tensor((n, 2 * k), "float32")):
        with T.Kernel(1, threads=32):
            x = T.view(X, (n * k,))
            pairs = T.reshape(Y, (2, k * n))
            for i in T.serial(n * k):
                pairs[0, i] = x[i]
                pairs[1, i] = -x[i]
    return main
)");
  const Array x = random_array(ir::kFloat32, {3, 5}, 1), y = random_array(ir::kFloat32, {3, 10}, 2);
  call("build()(x0, x1)", {x, y});
  expect_near(y, 0, [&](int64_t i) { return i < 15 ? x->at(i) : -x->at(i - 15); });
}

TEST_F(Views, ProductsOfEightBitFloats) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def product(dtype):
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64) as _:
            a = T.alloc_shared((32, 32), dtype)
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.clear(c)
            T.gemm(a, a, c, transpose_B=True)
            T.copy(c, C)
    return main
)");
  auto a = testing::make_array(ir::kFloat32, {32, 32}, [](int64_t i) { return double(i * 7 % 15) - 7; });
  expect_near(call("product(T.float8_e4m3fn)(x0)", {a}), 0, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 32; ++k) sum += a->at(i / 32 * 32 + k) * a->at(i % 32 * 32 + k);
    return sum;
  });
}

}  // namespace
}  // namespace tilepilot::stage
