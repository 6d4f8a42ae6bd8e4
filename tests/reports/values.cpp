// Loops with a start, values outside tensors, packed products, negations, layouts and casts.
#include <cmath>

#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

// Of two elements of 4 bits a byte, the first one in the lower half.
double nibble_at(const Array& packed, int64_t i) {
  const auto byte = static_cast<unsigned>(static_cast<int64_t>(packed->at(i / 2)) & 0xff);
  const auto code = static_cast<int>(i % 2 == 0 ? byte & 0xf : byte >> 4);
  return code < 8 ? code : code - 16;
}

Array packed_bytes(std::vector<int64_t> shape, int64_t step) {
  return testing::make_array(ir::kInt8, std::move(shape),
                             [step](int64_t i) { return static_cast<double>(i * step % 251 - 125); });
}

std::vector<Report> loops_and_layouts() {
  std::vector<Report> reports;
  reports.push_back({2669,
                     "AVectorLoopWithAStart",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((12,), "float32"), B: T.Tensor((12,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(12):
            B[i] = 0.0
        for i in T.vectorized(3, 11):
            B[i] = A[i] * 2.0
        for i in T.unroll(1, 3):
            B[i] = A[i] + 100.0
)",
                     {counting(ir::kFloat32, {12})},
                     [](const auto& x, int64_t i) {
                       const double a = x[0]->at(i);
                       return i >= 3 && i < 11 ? a * 2 : i == 1 || i == 2 ? a + 100 : 0;
                     }});
  reports.push_back({2883,
                     "ACopyOfLongRowsWithAStride",
                     R"(
stride = T.dynamic("stride")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.StridedTensor((2, 8192), (stride, 1), "uint8"), B: T.Tensor((2, 8192), "uint8")):
    with T.Kernel(2, threads=64) as b:
        f = T.alloc_fragment((1, 8192), "uint8")
        T.copy(A[b : b + 1, :], f)
        for i in T.Parallel(8192):
            f[0, i] = f[0, i] ^ 1
        T.copy(f, B[b : b + 1, :])
)",
                     {testing::make_array(ir::kUInt8, {2, 8192}, [](int64_t i) { return double(i % 253); })},
                     [](const auto&, int64_t i) { return static_cast<double>((i % 253) ^ 1); }});
  reports.push_back({2307,
                     "AnAssertionAboutAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16,), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        f = T.alloc_fragment((32,), "float32")
        for i in T.Parallel(32):
            if i < 16:
                f[i] = A[i]
            else:
                f[i] = T.infinity("float32")
        for i in T.Parallel(32):
            if i < 16:
                T.device_assert(T.isfinite(f[i]))
        for i in T.Parallel(32):
            B[i] = T.min(f[i], 50.0)
)",
                     {counting(ir::kFloat32, {16})},
                     [](const auto&, int64_t i) { return i < 16 ? static_cast<double>(i) : 50; }});
  reports.push_back({1728,
                     "ALoopFromTheBlockToTheNext",
                     R"(
n = T.dynamic("n")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(n, threads=32) as block:
        stop = block + 1
        for i in T.serial(block, stop):
            B[i] = A[i] * 3.0
)",
                     {counting(ir::kFloat32, {13})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) * 3; }});
  return reports;
}

std::vector<Report> reads_outside() {
  std::vector<Report> reports;
  for (const char* scope : {"shared", "fragment"})
    reports.push_back({2543,
                       std::string("SafeValuesInARegionCopiedTo_") + scope,
                       std::string(R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((60, 60), "int32"), B: T.Tensor((64, 64), "int32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_)") + scope +
                           R"(((64, 64), "int32")
        T.annotate_safe_value({A: -99})
        T.copy(A[0:64, 0:64], s)
        T.copy(s, B)
)",
                       {counting(ir::kInt32, {60, 60})},
                       [](const auto&, int64_t i) {
                         return i / 64 < 60 && i % 64 < 60 ? static_cast<double>(i / 64 * 60 + i % 64) : -99;
                       }});
  reports.push_back({2543,
                     "SafeValuesDecideAMaximum",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((5, 60), "float32"), B: T.Tensor((5,), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((8, 64), "float32")
        m = T.alloc_fragment((8,), "float32")
        T.annotate_safe_value({A: -1e30})
        T.copy(A[0, 0], f)
        T.reduce_max(f, m, dim=1)
        T.copy(m, B[0])
)",
                     {testing::make_array(ir::kFloat32, {5, 60}, [](int64_t i) { return -1.0 - double(i * 7 % 60); })},
                     [](const auto&, int64_t) { return -1.0; }});
  return reports;
}

std::vector<Report> negations() {
  std::vector<Report> reports;
  reports.push_back({2976,
                     "TheInverseOfABool",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "bool"), B: T.Tensor((3, 64), "int32")):
    with T.Kernel(1, threads=32):
        inverse = T.alloc_fragment((64,), "bool")
        for i in T.Parallel(64):
            inverse[i] = ~A[i]
        for i in T.Parallel(64):
            B[0, i] = T.cast(inverse[i], "int32")
            B[1, i] = T.if_then_else(~A[i], 5, 6)
            B[2, i] = 0
            if ~(i > 3):
                B[2, i] = 1
)",
                     {testing::make_array(ir::kBool, {64}, [](int64_t i) { return double(i % 3 == 0); })},
                     [](const auto&, int64_t at) {
                       const int64_t row = at / 64, i = at % 64;
                       if (row == 2) return i > 3 ? 0.0 : 1.0;
                       return row == 0 ? double(i % 3 != 0) : i % 3 != 0 ? 5.0 : 6.0;
                     }});
  for (const auto& [name, type] : {std::pair("int8", ir::kInt8), std::pair("int64", ir::kInt64)})
    reports.push_back({2993,
                       std::string("TheInverseOfAnElementOf_") + name,
                       std::string("\n@tilelang.jit(out_idx=-1)\n@T.prim_func\ndef kernel(A: T.Tensor((100,), '") +
                           name + "'), B: T.Tensor((100,), '" + name + R"(')):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(100):
            B[i] = ~A[i]
)",
                       {counting(type, {100})},
                       [](const auto&, int64_t i) { return static_cast<double>(~i); }});
  return reports;
}

std::vector<Report> packed_and_small_types() {
  std::vector<Report> reports;
  reports.push_back({2563,
                     "AProductOfInt4Tiles",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 64), T.int4), B: T.Tensor((48, 64), T.int4), C: T.Tensor((32, 48), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((32, 64), T.int4)
        b = T.alloc_shared((48, 64), T.int4)
        c = T.alloc_fragment((32, 48), "int32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)
)",
                     {packed_bytes({32, 32}, 37), packed_bytes({48, 32}, 83)},
                     [](const auto& x, int64_t at) {
                       double sum = 0;
                       for (int64_t k = 0; k < 64; ++k)
                         sum += nibble_at(x[0], at / 48 * 64 + k) * nibble_at(x[1], at % 48 * 64 + k);
                       return sum;
                     }});
  reports.push_back({2993,
                     "Int4ElementsReadBackwards",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((14,), "int4"), B: T.Tensor((14,), "int32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(14):
            B[i] = T.cast(A[13 - i], "int32") * 3
)",
                     {packed_bytes({7}, 61)},
                     [](const auto& x, int64_t i) { return nibble_at(x[0], 13 - i) * 3; }});
  reports.push_back(
      {2608,
       "AFloatThroughEightBits",
       R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((2, 8), "float32")):
    with T.Kernel(1, threads=64):
        low = T.alloc_local((1,), "float8_e4m3fn")
        for i in T.serial(8):
            low[0] = A[i]
            B[0, i] = low[0]
            B[1, i] = T.cast(T.cast(A[i], "float8_e5m2"), "float32")
)",
       {testing::make_array(ir::kFloat32, {8},
                            [](int64_t i) { return std::vector<double>{0, 1.06, -3.3, 17, 440, 1e-9, -0.3, 100}[i]; })},
       [](const auto&, int64_t i) {
         return std::vector<double>{0, 1, -3.25, 16, 448, 0, -0.3125, 96, 0, 1, -3.5, 16, 448, 0, -0.3125, 96}[i];
       }});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_values() {
  return joined({loops_and_layouts(), reads_outside(), negations(), packed_and_small_types()});
}

}  // namespace tilepilot::stage
