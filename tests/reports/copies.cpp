// Copies, parallel loops, casts, integers and sizes known at run time.
#include <cmath>

#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

double at(const std::vector<Array>& x, int64_t i) { return x[0]->at(i); }

std::vector<Report> copies() {
  std::vector<Report> reports;
  reports.push_back({1729,
                     "AFewElementsReadByAWideLoop",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((2,), "float32"), B: T.Tensor((2, 2560), "float32")):
    with T.Kernel(1, threads=256):
        f = T.alloc_fragment((2,), "float32")
        T.copy(A, f)
        for i, j in T.Parallel(2, 2560):
            B[i, j] = f[i] * 2
)",
                     {counting(ir::kFloat32, {2})},
                     [](const auto& x, int64_t i) { return 2 * x[0]->at(i / 2560); }});
  reports.push_back({3007,
                     "ACoalescedWidthThatDividesNothing",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((9, 7), "float32"), B: T.Tensor((9, 7), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((9, 7), "float32")
        T.copy(A, s, coalesced_width=2)
        T.copy(s, B, coalesced_width=4)
)",
                     {counting(ir::kFloat32, {9, 7})},
                     at});
  reports.push_back({2581,
                     "TilesWithPaddedColumns",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16, 24), "float16"), B: T.Tensor((16, 24), "float16")):
    with T.Kernel(2, threads=64) as bx:
        s = T.alloc_shared((8, 32), "float16")
        T.fill(s, -1)
        T.copy(A[bx * 8 : bx * 8 + 8, 0:24], s[:, :24])
        T.copy(s[:, :24], B[bx * 8 : bx * 8 + 8, 0:24])
)",
                     {counting(ir::kFloat16, {16, 24})},
                     at});
  reports.push_back({2529,
                     "TheLastBlockOfAVector",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((300,), "float16"), B: T.Tensor((300,), "float16")):
    with T.Kernel(T.ceildiv(300, 256), threads=128) as bx:
        s = T.alloc_shared((256,), "float16")
        T.copy(A[bx * 256], s)
        T.copy(s, B[bx * 256])
)",
                     {counting(ir::kFloat16, {300})},
                     at});
  reports.push_back({2626,
                     "TransposesOfThreeAxes",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((3, 4, 5), "float32"), B: T.Tensor((3, 5, 4), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((3, 4, 5), "float32")
        t = T.alloc_shared((3, 5, 4), "float32")
        T.copy(A, s)
        T.transpose(s, t)
        T.copy(t, B)
)",
                     {counting(ir::kFloat32, {3, 4, 5})},
                     [](const auto& x, int64_t i) { return x[0]->at(i / 20 * 20 + i % 4 * 5 + i % 20 / 4); }});
  return reports;
}

std::vector<Report> parallel_loops() {
  std::vector<Report> reports;
  reports.push_back({2957,
                     "LoopsOfDifferentExtentsOverAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((256,), "float32")
        T.copy(A, f)
        for i in T.Parallel(100):
            f[i] = 5.0
        for i in T.Parallel(256):
            C[i] = f[i] + 1.0
)",
                     {counting(ir::kFloat32, {256})},
                     [](const auto& x, int64_t i) { return i < 100 ? 6.0 : x[0]->at(i) + 1; }});
  reports.push_back({2948,
                     "ARotatedReadOfAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((128,), "int32")
        T.copy(A, f)
        for i in T.Parallel(128):
            B[i] = f[(i + 1) % 128]
)",
                     {counting(ir::kInt32, {128})},
                     [](const auto&, int64_t i) { return static_cast<double>((i + 1) % 128); }});
  reports.push_back({3005,
                     "NeighboursInAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((128,), "int32")
        T.copy(A, f)
        for i in T.Parallel(128):
            B[i] = f[i] + f[(i + 1) % 128]
)",
                     {counting(ir::kInt32, {128})},
                     [](const auto&, int64_t i) { return static_cast<double>(i + (i + 1) % 128); }});
  reports.push_back({2396,
                     "ASerialLoopOverAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((16, 16), "float32")
        T.copy(A, f)
        for i in T.serial(16):
            for j in T.serial(16):
                B[i, j] = f[i, j]
)",
                     {counting(ir::kFloat32, {16, 16})},
                     at});
  reports.push_back({2398,
                     "AFragmentWiderThanItsThreads",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((1, 229), "float32"), B: T.Tensor((1, 229), "float32")):
    with T.Kernel(1, threads=128):
        f = T.alloc_fragment((1, 229), "float32")
        T.copy(A, f)
        for i, j in T.Parallel(1, 229):
            f[i, j] = f[i, j] * 2.0
        T.copy(f, B)
)",
                     {counting(ir::kFloat32, {1, 229})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) * 2; }});
  reports.push_back({1374,
                     "SumsOfGroupsInAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16, 14), "int32"), B: T.Tensor((16, 448), "int32"), C: T.Tensor((16, 14), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((16, 14), "int32")
        b = T.alloc_fragment((16, 448), "int32")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(16, 448):
            a[i, j // 32] += b[i, j]
        T.copy(a, C)
)",
                     {counting(ir::kInt32, {16, 14}), small_integers(ir::kInt32, {16, 448})},
                     [](const auto& x, int64_t i) {
                       double sum = x[0]->at(i);
                       for (int64_t j = 0; j < 32; ++j) sum += x[1]->at(i / 14 * 448 + i % 14 * 32 + j);
                       return sum;
                     }});
  reports.push_back({1374,
                     "SumsAndMaximaOfRowsOfAFragment",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16, 48), "int32"), B: T.Tensor((4, 16), "int32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((16, 48), "int32")
        s = T.alloc_shared((16,), "int32")
        sum = T.alloc_fragment((16,), "int32")
        top = T.alloc_fragment((16,), "int32")
        rest = T.alloc_fragment((16,), "int32")
        twice = T.alloc_fragment((16, 48), "int32")
        T.copy(A, a)
        T.clear(s)
        T.clear(sum)
        T.clear(rest)
        T.fill(top, -100)
        for i, j in T.Parallel(16, 48):
            sum[i] += a[i, j]
        for i, j in T.Parallel(16, 48):
            twice[i, j] = 2 * a[i, j]
            top[i] = T.max(top[i], a[i, j] * j)
            rest[i] -= twice[i, j]
        for i, j in T.Parallel(16, 48):
            s[i] = a[i, j] + s[i]
        T.copy(sum, B[0, 0:16])
        T.copy(top, B[1, 0:16])
        T.copy(rest, B[2, 0:16])
        T.copy(s, B[3, 0:16])
)",
                     {small_integers(ir::kInt32, {16, 48})},
                     [](const auto& x, int64_t at) {
                       double sum = 0, top = -100;
                       for (int64_t j = 0; j < 48; ++j) {
                         const double value = x[0]->at(at % 16 * 48 + j);
                         sum += value;
                         top = std::max(top, value * static_cast<double>(j));
                       }
                       return at / 16 == 1 ? top : at / 16 == 2 ? -2 * sum : sum;
                     }});
  reports.push_back({1165,
                     "AFragmentThroughACast",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((32, 32), "float16")
        p = T.alloc_fragment((32, 32), "float32")
        low = T.alloc_fragment((32, 32), "float16")
        o = T.alloc_fragment((32, 32), "float32")
        T.copy(A, s)
        T.gemm(s, s, p, clear_accum=True)
        T.copy(p, low)
        T.gemm(low, s, o, clear_accum=True)
        T.copy(o, C)
)",
                     {testing::make_array(ir::kFloat16, {32, 32},
                                          [](int64_t i) { return static_cast<double>(i / 32 == i % 32) * 2; })},
                     [](const auto&, int64_t i) { return static_cast<double>(i / 32 == i % 32) * 8; }});
  return reports;
}

std::vector<Report> casts_and_vectors() {
  std::vector<Report> reports;
  reports.push_back({2382,
                     "AtomicAdditionOfAnotherType",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=32):
        s = T.alloc_fragment((64,), "float32")
        T.copy(A, s)
        for i in T.Parallel(64):
            B[i] = 1
        for i in T.Parallel(64):
            T.atomic_add(B[i], s[i])
)",
                     {counting(ir::kFloat32, {64})},
                     [](const auto&, int64_t i) { return static_cast<double>(i + 1); }});
  reports.push_back({2489,
                     "ANegativeNumberInEveryLane",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(64):
            B[i] = -7
)",
                     {counting(ir::kInt32, {64})},
                     [](const auto&, int64_t) { return -7.0; }});
  reports.push_back({2427,
                     "ABytesTileFilledWithANegativeNumber",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "int8"), B: T.Tensor((64,), "int8")):
    with T.Kernel(1, threads=8):
        s = T.alloc_shared((64,), "int8")
        T.fill(s, -7)
        T.copy(s, B)
)",
                     {counting(ir::kInt8, {64})},
                     [](const auto&, int64_t) { return -7.0; }});
  reports.push_back({2682,
                     "ASelectionInAVectorLoop",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.vectorized(8):
            a = A[i]
            B[i] = T.Select(a > 0.0, a, a + 10.0)
)",
                     {small_integers(ir::kFloat32, {8})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) > 0 ? x[0]->at(i) : x[0]->at(i) + 10; }});
  reports.push_back({1103,
                     "AVectorLoopThatAddsToOneElement",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 4), "float32")):
    with T.Kernel(1, threads=4):
        tx = T.get_thread_binding()
        for i in T.serial(4):
            B[tx, i] = 0.0
            for j in T.vectorized(8):
                B[tx, i] = B[tx, i] + A[tx, i * 8 + j]
)",
                     {small_integers(ir::kFloat32, {4, 32})},
                     [](const auto& x, int64_t i) {
                       double sum = 0;
                       for (int64_t j = 0; j < 8; ++j) sum += x[0]->at(i / 4 * 32 + i % 4 * 8 + j);
                       return sum;
                     }});
  reports.push_back({2483,
                     "IntegersRoundedToBfloat16",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "bfloat16")):
    with T.Kernel(1, threads=4):
        for i in T.Parallel(4):
            B[i] = T.Cast("bfloat16", A[i])
)",
                     {testing::make_array(ir::kInt32, {4},
                                          [](int64_t i) {
                                            return std::vector<double>{259, 33000, -259, 257}[i];
                                          })},
                     [](const auto&, int64_t i) {
                       return std::vector<double>{260, 33024, -260, 256}[i];
                     }});
  reports.push_back({2385,
                     "CopiesBetweenTheSixteenBitTypes",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "bfloat16")):
    with T.Kernel(1, threads=8):
        f = T.alloc_fragment((64,), "bfloat16")
        T.copy(A, f)
        T.copy(f, B)
)",
                     {counting(ir::kFloat16, {64})},
                     at});
  reports.push_back({2610,
                     "ScalesOfEightBitsBecomeBfloat16",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "bfloat16")):
    with T.Kernel(1, threads=4):
        for i in T.serial(4):
            B[i] = T.Cast("bfloat16", T.Cast("float8_e8m0fnu", A[i]))
)",
                     {testing::make_array(ir::kFloat32, {4}, [](int64_t i) { return std::ldexp(1.0, int(i) - 2); })},
                     at});
  return reports;
}

std::vector<Report> integers_and_sizes() {
  std::vector<Report> reports;
  const Array dividends = testing::make_array(ir::kInt32, {42}, [](int64_t i) { return double(i % 21 - 10); });
  reports.push_back({2943,
                     "DivisionRoundedUpByNegativeNumbers",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((42,), "int32"), D: T.Tensor((42,), "int32"), B: T.Tensor((42,), "int32")):
    with T.Kernel(1, threads=42):
        for i in T.Parallel(42):
            B[i] = T.ceildiv(A[i], D[i]) * 100 + T.ceildiv(7, -3)
)",
                     {dividends, testing::make_array(ir::kInt32, {42}, [](int64_t i) { return i < 21 ? -3.0 : 4.0; })},
                     [](const auto& x, int64_t i) { return std::ceil(x[0]->at(i) / x[1]->at(i)) * 100 - 2; }});
  reports.push_back({3008,
                     "FloorDivisionOfFloats",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((42,), "float32"), B: T.Tensor((42,), "float32")):
    with T.Kernel(1, threads=42):
        for i in T.Parallel(42):
            B[i] = A[i] // 4.0 * 100.0 + A[i] % 4.0
)",
                     {testing::make_array(ir::kFloat32, {42}, [](int64_t i) { return double(i % 21 - 10); })},
                     [](const auto& x, int64_t i) {
                       double floor = std::floor(x[0]->at(i) / 4);
                       return floor * 100 + x[0]->at(i) - floor * 4;
                     }});
  reports.push_back({995,
                     "FloorsOfNegativeNumbersFoldedAndNot",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((42,), "int32"), B: T.Tensor((42,), "int32")):
    with T.Kernel(1, threads=42):
        for i in T.Parallel(42):
            j = i % 21 - 10
            B[i] = (j // 4 - A[i] // 4) * 100 + (j % 4 - A[i] % 4) + (-7 // 2) * (-7 % 3)
)",
                     {dividends},
                     [](const auto&, int64_t) { return -8.0; }});
  reports.push_back({968,
                     "AVectorOfAnyLength",
                     R"(
n = T.symbolic("n")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((n,), "bfloat16"), B: T.Tensor((n,), "bfloat16"), C: T.Tensor((n,), "bfloat16")):
    with T.Kernel(T.ceildiv(n, 256), threads=256) as bx:
        for i in T.Parallel(256):
            C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]
)",
                     {small_integers(ir::kBFloat16, {301}), small_integers(ir::kBFloat16, {301}, 2)},
                     [](const auto& x, int64_t i) { return x[0]->at(i) + x[1]->at(i); }});
  reports.push_back({708,
                     "AnAlignmentThatIsNotTrue",
                     R"(
n = T.dynamic("n")

@tilelang.jit(out_idx=-1, pass_configs={"tl.disable_dynamic_tail_split": True, "tl.dynamic_alignment": 8})
@T.prim_func
def kernel(A: T.Tensor((n, 5), "float16"), B: T.Tensor((n, 5), "float16")):
    with T.Kernel(T.ceildiv(n, 8), threads=32) as bx:
        s = T.alloc_shared((8, 5), "float16")
        T.copy(A[bx * 8, 0], s)
        for i, j in T.Parallel(8, 5):
            s[i, j] = s[i, j] + 1
        T.copy(s, B[bx * 8, 0])
)",
                     {counting(ir::kFloat16, {13, 5})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) + 1; }});
  reports.push_back(
      {290,
       "AMaskByALengthFromATensor",
       R"(
b = T.dynamic("b")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((b, 16), "float32"), L: T.Tensor((b,), "int32"), C: T.Tensor((b, 16), "float32")):
    with T.Kernel(b, threads=32) as bid:
        f = T.alloc_fragment((16,), "float32")
        T.copy(A[bid, 0:16], f)
        for k in T.serial(2):
            if k == 0:
                for j in T.Parallel(16):
                    f[j] = T.if_then_else(j >= L[bid], -T.infinity("float32"), f[j])
        for j in T.Parallel(16):
            C[bid, j] = T.max(f[j], -100.0)
)",
       {counting(ir::kFloat32, {3, 16}), testing::make_array(ir::kInt32, {3}, [](int64_t i) { return double(i * 7); })},
       [](const auto& x, int64_t i) { return i % 16 >= x[1]->at(i / 16) ? -100 : x[0]->at(i); }});
  reports.push_back({215,
                     "AGuardedLoopOfAnyLength",
                     R"(
n = T.symbolic("n")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 32), 1, 1) as (bx, by, bz):
        for i in T.Parallel(32):
            if bx * 32 + i < n:
                B[bx * 32 + i] = A[bx * 32 + i] + 0.5
)",
                     {counting(ir::kFloat32, {50})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) + 0.5; }});
  reports.push_back({2433,
                     "EveryTileOfAPersistentLoop",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((20, 44), "float32"), B: T.Tensor((20, 44), "float32")):
    with T.Kernel(6, threads=32) as block:
        for i, j in T.Persistent([5, 11], 6, block):
            for r, c in T.Parallel(4, 4):
                B[i * 4 + r, j * 4 + c] = A[i * 4 + r, j * 4 + c] + 1.0
)",
                     {counting(ir::kFloat32, {20, 44})},
                     [](const auto& x, int64_t i) { return x[0]->at(i) + 1; }});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_copies() {
  return joined({copies(), parallel_loops(), casts_and_vectors(), integers_and_sizes()});
}

}  // namespace tilepilot::stage
