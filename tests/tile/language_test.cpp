// Functions of the language that are put together from others, run through the CPU backend and compared with C++.
#include <bit>
#include <cmath>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class Language : public Run {
 protected:
  // One array of `rows` elements, computed from two inputs of that many: `B[i] = expression` of a = A[i] and c = C[i].
  Array map(const std::string& expression, const Array& a, const Array& c, const std::string& type) {
    const std::string inputs = ir::to_string(a->view.type), rows = std::to_string(a->size());
    load("@tilelang.jit(out_idx=-1)\ndef build():\n    @T.prim_func\n    def main(A: T.Tensor((" + rows + ",), '" +
         inputs + "'), C: T.Tensor((" + rows + ",), '" + inputs + "'), B: T.Tensor((" + rows + ",), '" + type +
         "')):\n        with T.Kernel(1) as bx:\n            for i in T.Parallel(" + rows + "):\n" +
         "                a = A[i]\n                c = C[i]\n                B[i] = " + expression +
         "\n    return main\n");
    return call("build()(x0, x1)", {a, c});
  }
};

TEST_F(Language, DivisionOfC) {
  auto a = testing::make_array(ir::kInt32, {400}, [](int64_t i) { return static_cast<double>(i % 20 - 10); });
  auto c = testing::make_array(
      ir::kInt32, {400}, [](int64_t i) { return static_cast<double>(i / 20 % 19 - 9 == 0 ? 5 : i / 20 % 19 - 9); });
  auto quotient = map("T.truncdiv(a, c)", a, c, "int32"), rest = map("T.truncmod(a, c)", a, c, "int32");
  for (int64_t i = 0; i < 400; ++i) {
    const auto x = static_cast<int>(a->at(i)), y = static_cast<int>(c->at(i));
    EXPECT_EQ(quotient->at(i), x / y) << x << " " << y;
    EXPECT_EQ(rest->at(i), x % y) << x << " " << y;
  }
}

TEST_F(Language, BitsAreCounted) {
  auto a = testing::make_array(ir::kInt32, {64},
                               [](int64_t i) { return static_cast<double>(i * 123456789 % 2147483647 - i); });
  auto negative = testing::make_array(ir::kInt32, {64}, [](int64_t i) { return static_cast<double>(-i * 3); });
  auto count = map("T.popcount(a) * 100 + T.popcount(c)", a, negative, "int32");
  for (int64_t i = 0; i < 64; ++i) {
    const int x = std::popcount(static_cast<uint32_t>(static_cast<int32_t>(a->at(i))));
    EXPECT_EQ(count->at(i), x * 100 + std::popcount(static_cast<uint32_t>(static_cast<int32_t>(negative->at(i)))));
  }
  auto wide = testing::make_array(ir::kInt64, {8}, [](int64_t i) { return static_cast<double>((i << 40) - 3); });
  auto wide_count = map("T.popcount(a)", wide, wide, "int32");
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(wide_count->at(i), std::popcount(static_cast<uint64_t>((i << 40) - 3)));
}

TEST_F(Language, RoundingAndSigns) {
  auto a = testing::make_array(ir::kFloat32, {80}, [](int64_t i) { return static_cast<double>(i - 40) * 0.25; });
  auto c = testing::make_array(ir::kFloat32, {80}, [](int64_t i) { return i % 2 == 0 ? -0.0 : 2.0; });
  expect_near(map("T.round(a, 'ties-away-from-zero')", a, c, "float32"), 0,
              [&](int64_t i) { return std::round(a->at(i)); });
  expect_near(map("T.round(a)", a, c, "float32"), 0, [&](int64_t i) { return std::nearbyint(a->at(i)); });
  expect_near(map("T.copysign(a, c)", a, c, "float32"), 0,
              [&](int64_t i) { return std::copysign(a->at(i), c->at(i)); });
}

TEST_F(Language, TilesAreTransposed) {
  load(R"(
@tilelang.jit(out_idx=-1)
def transposed():
    @T.prim_func
    def main(A: T.Tensor((2, 8, 12), "float32"), B: T.Tensor((2, 12, 8), "float32")):
        with T.Kernel(2) as bx:
            tile = T.alloc_shared((8, 12), "float32")
            turned = T.alloc_shared((12, 8), "float32")
            T.copy(A[bx, 0:8, 0:12], tile)
            T.transpose(tile, turned)
            T.copy(turned, B[bx, 0:12, 0:8])
    return main
)");
  auto a = random_array(ir::kFloat32, {2, 8, 12}, 1);
  expect_near(call("transposed()(x0)", {a}), 0,
              [&](int64_t i) { return a->at(i / 96 * 96 + i % 8 * 12 + i / 8 % 12); });
}

TEST_F(Language, ConvolutionsBecomeProducts) {
  load(R"(
@tilelang.jit(out_idx=-1)
def columns(N, H, W, C, K, S, D, P):
    rows = (H + 2 * P - D * (K - 1) - 1) // S + 1
    width = (W + 2 * P - D * (K - 1) - 1) // S + 1
    @T.prim_func
    def main(A: T.Tensor((N, H, W, C), "float32"), B: T.Tensor((N * rows * width, K * K * C), "float32")):
        with T.Kernel(T.ceildiv(N * rows * width, 16), T.ceildiv(K * K * C, 8)) as (bx, by):
            tile = T.alloc_shared((16, 8), "float32")
            T.im2col(A, tile, bx, by, K, S, D, P)
            T.copy(tile, B[bx * 16, by * 8])
    return main
)");
  constexpr int64_t N = 2, H = 7, W = 9, C = 3, K = 3, S = 2, D = 2, P = 1;
  constexpr int64_t rows = (H + 2 * P - D * (K - 1) - 1) / S + 1, width = (W + 2 * P - D * (K - 1) - 1) / S + 1;
  auto a = random_array(ir::kFloat32, {N, H, W, C}, 2);
  expect_near(call("columns(2, 7, 9, 3, 3, 2, 2, 1)(x0)", {a}), 0, [&](int64_t at) {
    const int64_t m = at / (K * K * C), k = at % (K * K * C);
    const int64_t y = m / width % rows * S + k / C / K * D - P, x = m % width * S + k / C % K * D - P;
    if (y < 0 || y >= H || x < 0 || x >= W) return 0.0;
    return a->at(((m / (rows * width) * H + y) * W + x) * C + k % C);
  });
}

// Every tile is taken once, whatever the number of blocks and the size of groups.
TEST_F(Language, PersistentLoopsCoverTheGrid) {
  load(R"(
@tilelang.jit(out_idx=-1)
def visits(M, N, blocks, group):
    @T.prim_func
    def main(A: T.Tensor((M, N), "int32")):
        with T.Kernel(blocks) as block:
            for i, j in T.Persistent([M, N], blocks, block, group):
                A[i, j] = i * N + j + 1
    return main
)");
  for (const char* grid : {"5, 7, 4, 3", "1, 1, 8, 8", "6, 16, 5, 8", "9, 4, 1, 16"})
    expect_near(call("visits(" + std::string(grid) + ")()", {}), 0,
                [](int64_t i) { return static_cast<double>(i + 1); });
}

TEST_F(Language, DtypesAreStrings) {
  load("import torch\n");
  for (const char* fact :
       {"''.join(c for c in T.int32 if c.isdigit()) == '32'", "T.float16.startswith('float')",
        "T.bfloat16[4:] == 'at16'", "'int8' in T.uint8", "len(T.bool) == 4", "T.int8 + 'x4' == 'int8x4'",
        "{'float16': 1}[T.float16] == 1", "T.dtype('float') == 'float32'", "T.dtype(torch.bfloat16) == T.bfloat16",
        "isinstance(T.int8, T.dtype)", "not isinstance('int8', T.dtype)", "T.float16.as_torch() == torch.float16",
        "T.uint.bits == 32", "T.bfloat16.type_code == 4 and T.int8.lanes == 1",
        "T.float64.itemsize == T.float64.bytes == 8", "f'{T.float16}' == 'float16'", "T.float16 != 'float32'",
        "T.dtypes.int8 == T.int8", "not T.int8.is_float4()"})
    EXPECT_TRUE(holds(fact)) << fact << " " << failure(fact, {});
}

}  // namespace
}  // namespace tilepilot::stage
