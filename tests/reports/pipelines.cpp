// Software-pipelined GEMMs, TMA and warp roles.
#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

double product_at(const std::vector<Array>& x, int64_t n, int64_t k, int64_t at) {
  double sum = 0;
  for (int64_t step = 0; step < k; ++step) sum += x[0]->at(at / n * k + step) * x[1]->at(step * n + at % n);
  return sum;
}

std::vector<Array> factors(int64_t m, int64_t n, int64_t k) {
  return {small_integers(ir::kFloat16, {m, k}), small_integers(ir::kFloat16, {k, n}, 2)};
}

std::vector<Report> products() {
  std::vector<Report> reports;
  reports.push_back({2309, "SiblingLoopsOfDifferentDepth",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 192), "float16"), B: T.Tensor((192, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(3, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        for k in T.Pipelined(3, num_stages=4):
            T.copy(A[0, 96 + k * 32], a)
            T.copy(B[96 + k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)
)",
                     factors(64, 64, 192), [](const auto& x, int64_t i) { return product_at(x, 64, 192, i); }});
  reports.push_back({2547, "AProductBeforeThePipelineOfOthers",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        p = T.alloc_shared((64, 64), "float16")
        q = T.alloc_shared((64, 64), "float16")
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        held = T.alloc_fragment((64, 32), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        T.copy(A[0:64, 0:64], p)
        T.copy(B[0:64, 0:64], q)
        T.gemm(p, q, c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, 64 + k * 32], a)
            T.copy(a, held)
            T.copy(B[64 + k * 32, 0], b)
            T.gemm(held, b, c)
        T.copy(c, C)
)",
                     factors(64, 64, 128), [](const auto& x, int64_t i) { return product_at(x, 64, 128, i); }});
  for (const int64_t k : {48, 80})
    reports.push_back({2555, "TilesOf" + std::to_string(k) + "Columns", "columns = " + std::to_string(k) + R"(

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, columns * 2), "float16"), B: T.Tensor((columns * 2, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, columns), "float16")
        b = T.alloc_shared((columns, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * columns], a)
            T.copy(B[k * columns, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)
)",
                       factors(64, 64, 2 * k), [k](const auto& x, int64_t i) { return product_at(x, 64, 2 * k, i); }});
  reports.push_back({2674, "ManyTilesABlockAndAnOddNumberOfSteps",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((192, 96), "float16"), B: T.Tensor((96, 128), "float16"), C: T.Tensor((192, 128), "float32")):
    with T.Kernel(2, threads=128) as block:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        for by, bx in T.Persistent([3, 2], 2, block):
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])
)",
                     factors(192, 128, 96), [](const auto& x, int64_t i) { return product_at(x, 128, 96, i); }});
  reports.push_back({2613, "ATileThatTwoRolesReadAndAllFill",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((64, 32), "float16")
        left = T.alloc_shared((32, 32), "float16")
        right = T.alloc_shared((32, 32), "float16")
        upper = T.alloc_fragment((64, 32), "float32")
        lower = T.alloc_fragment((64, 32), "float32")
        with T.ws(0):
            T.clear(upper)
        with T.ws(1):
            T.clear(lower)
        for k in T.serial(3):
            T.copy(A[0, k * 32], a)
            with T.ws(0):
                T.copy(B[k * 32, 0], left)
                T.gemm(a, left, upper)
            with T.ws(1):
                T.copy(B[k * 32, 32], right)
                T.gemm(a, right, lower)
        with T.ws(0):
            T.copy(upper, C[0:64, 0:32])
        with T.ws(1):
            T.copy(lower, C[0:64, 32:64])
)",
                     factors(64, 64, 96), [](const auto& x, int64_t i) { return product_at(x, 64, 96, i); }});
  reports.push_back({1852, "AsManyStepsAsTheBlockSays",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((4, 64, 64), "float32")):
    with T.Kernel(4, threads=128) as block:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(block + 1, num_stages=3):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C[block, 0, 0])
)",
                     factors(64, 64, 128), [](const auto& x, int64_t i) {
                       double sum = 0;
                       for (int64_t k = 0; k < (i / 4096 + 1) * 32; ++k)
                         sum += x[0]->at(i % 4096 / 64 * 128 + k) * x[1]->at(k * 64 + i % 64);
                       return sum;
                     }});
  return reports;
}

// A program that asks for the numbers of its threads beside a pipeline, whose threads it does not count.
std::vector<Report> numbered_threads() {
  std::vector<Report> reports;
  for (const auto& [name, number] :
       {std::pair("TheNumberOfAThread", "T.get_thread_binding(0)"),
        std::pair("TheLaneAndTheWarpOfAThread", "T.get_lane_idx() + T.get_warp_idx() * 32")})
    reports.push_back({2346, name, std::string(R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((128, 192), "float16"), B: T.Tensor((192, 64), "float16"), C: T.Tensor((128, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        numbers = T.alloc_shared((256,), "int32")
        c = T.alloc_fragment((128, 64), "float32")
        number = )") + number + R"(
        numbers[number] = number
        T.clear(c)
        for k in T.Pipelined(6, num_stages=3):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
            numbers[number] += 1
        for i, j in T.Parallel(128, 64):
            c[i, j] += numbers[255 - i]
        T.copy(c, C)
)",
                       factors(128, 64, 192), [](const auto& x, int64_t i) {
                         return product_at(x, 64, 192, i) + static_cast<double>(255 - i / 64 + 6);
                       }});
  reports.push_back({2346, "TheLeastNumberOfAllThreads",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((128, 192), "float16"), B: T.Tensor((192, 64), "float16"), C: T.Tensor((128, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((128, 64), "float32")
        number = T.get_lane_idx() + T.get_warp_idx() * 32
        first = T.alloc_reducer((1,), "int32", op="min", replication="all")
        T.fill(first, 1024)
        first[0] = T.min(first[0], number + 5)
        T.finalize_reducer(first)
        T.clear(c)
        for k in T.Pipelined(6, num_stages=3):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(128, 64):
            c[i, j] += first[0]
        T.copy(c, C)
)",
                     factors(128, 64, 192), [](const auto& x, int64_t i) { return product_at(x, 64, 192, i) + 5; }});
  return reports;
}

// Copies that TMA makes where boxes, strides and starts allow it, and others beside them.
std::vector<Report> engine() {
  std::vector<Report> reports;
  reports.push_back({2566, "APipelineOfOneStep",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((2, 64, 64), "float16")
        b = T.alloc_shared((2, 64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        full = T.alloc_barrier([128, 128])
        empty = T.alloc_barrier([128, 128])
        for k in T.serial(1):
            with T.ws(1):
                T.barrier_wait(empty[k % 2], ((k // 2) % 2) ^ 1)
                T.tma_copy(A[0:64, k * 64 : k * 64 + 64], a[k % 2, :, :], barrier=full[k % 2])
                T.tma_copy(B[k * 64 : k * 64 + 64, 0:64], b[k % 2, :, :], barrier=full[k % 2])
                T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(c)
                T.barrier_wait(full[k % 2], (k // 2) % 2)
                T.gemm(a[k % 2, :, :], b[k % 2, :, :], c)
                T.barrier_arrive(empty[k % 2])
        with T.ws(0):
            T.copy(c, C)
)",
                     factors(64, 64, 64), [](const auto& x, int64_t i) { return product_at(x, 64, 64, i); }});
  reports.push_back({2567,
                     "RowsOfWhichNoneIsAligned",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((3, 250), "float32"), Q: T.Tensor((256, 64), "float16"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        scale = T.alloc_shared((64,), "float32")
        q = T.alloc_shared((64, 64), "float16")
        f = T.alloc_fragment((64, 64), "float32")
        sum = T.alloc_fragment((64,), "float32")
        T.clear(sum)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(Q[k * 64, 0], q)
            T.copy(A[1, k * 64 : k * 64 + 64], scale)
            for i, j in T.Parallel(64, 64):
                f[i, j] = q[i, j] * scale[i]
            T.reduce_sum(f, sum, dim=0, clear=False)
        T.copy(sum, B)
)",
                     {small_integers(ir::kFloat32, {3, 250}), small_integers(ir::kFloat16, {256, 64}, 3)},
                     [](const auto& x, int64_t j) {
                       double sum = 0;
                       for (int64_t i = 0; i < 250; ++i) sum += x[1]->at(i * 64 + j) * x[0]->at(250 + i);
                       return sum;
                     }});
  reports.push_back({2527,
                     "APartThatStartsAtTheSecondColumn",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 32), "int32"), B: T.Tensor((32, 64), "int32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((32, 32), "int32")
        T.fill(s, 5)
        T.copy(s, B[0:32, 0:32])
        T.copy(s, B[0:32, 32:64])
        T.copy(A, s)
        T.copy(s, B[0:32, 1:33])
)",
                     {counting(ir::kInt32, {32, 32})},
                     [](const auto& x, int64_t i) {
                       const int64_t column = i % 64 - 1;
                       return column < 0 || column >= 32 ? 5 : x[0]->at(i / 64 * 32 + column);
                     }});
  reports.push_back({2584,
                     "APartOfAVectorThatStartsAnywhere",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((300,), "float16"), B: T.Tensor((4, 64), "float16")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float16")
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[k * 65 + 3 : k * 65 + 67], s)
            for i in T.Parallel(64):
                B[k, i] = s[i]
)",
                     {counting(ir::kFloat16, {300})},
                     [](const auto& x, int64_t i) { return x[0]->at(i / 64 * 65 + 3 + i % 64); }});
  reports.push_back({1648,
                     "RowsOfBytesOfWhichTheLastAreMissing",
                     R"(
m = T.symbolic("m")

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((m, 256), "int8"), B: T.Tensor((m, 256), "float32")):
    with T.Kernel(T.ceildiv(m, 4), 2, threads=32) as (by, bx):
        s = T.alloc_shared((4, 128), "int8")
        f = T.alloc_fragment((4, 128), "float32")
        T.fill(s, 0)
        T.copy(A[by * 4 : by * 4 + 4, bx * 128 : bx * 128 + 128], s)
        T.copy(s, f)
        T.copy(f, B[by * 4, bx * 128])
)",
                     {small_integers(ir::kInt8, {10, 256})},
                     [](const auto& x, int64_t i) { return x[0]->at(i); }});
  reports.push_back({2528,
                     "APipelineOfVectorsOf64Bytes",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((4, 32), "float16"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((32,), "float16")
        sum = T.alloc_fragment((32,), "float32")
        T.clear(sum)
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[k, 0:32], s)
            for i in T.Parallel(32):
                sum[i] += s[31 - i]
        T.copy(sum, B)
)",
                     {small_integers(ir::kFloat16, {4, 32})},
                     [](const auto& x, int64_t i) {
                       double sum = 0;
                       for (int64_t k = 0; k < 4; ++k) sum += x[0]->at(k * 32 + 31 - i);
                       return sum;
                     }});
  reports.push_back({2525,
                     "AVectorWhoseBytesAreNoMultipleOf16",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((63,), "float32"), B: T.Tensor((63,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((63,), "float32")
        T.copy(A, s)
        T.copy(s, B)
)",
                     {counting(ir::kFloat32, {63})},
                     [](const auto& x, int64_t i) { return x[0]->at(i); }});
  reports.push_back({2514,
                     "AFragmentThatEveryThreadFills",
                     R"(
from tilelang.layout import make_fully_replicated_layout_fragment

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((2, 64), "float32")):
    with T.Kernel(1, threads=64):
        f = T.alloc_fragment((64,), "float32")
        T.annotate_layout({f: make_fully_replicated_layout_fragment(f, 64)})
        for i in T.serial(64):
            f[i] = A[i] + 1
        T.copy(f, B[0, 0:64])
        for i in T.Parallel(64):
            B[1, i] = f[63 - i]
)",
                     {counting(ir::kFloat32, {64})},
                     [](const auto& x, int64_t i) { return 1 + x[0]->at(i < 64 ? i : 127 - i); }});
  reports.push_back({2609,
                     "ASwizzledTileSeenAsAnotherType",
                     R"(
from tilelang.layout import make_swizzled_layout

@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64, 64), "float16")
        words = T.view(s, (64, 32), "int32")
        T.annotate_layout({s: make_swizzled_layout(s)})
        T.copy(A, s)
        swapped = T.alloc_fragment((64, 32), "int32")
        for i, j in T.Parallel(64, 32):
            swapped[i, j] = words[63 - i, j]
        for i, j in T.Parallel(64, 32):
            words[i, j] = swapped[i, j]
        T.copy(s, B)
)",
                     {testing::make_array(ir::kFloat16, {64, 64}, [](int64_t i) { return double(i % 2000); })},
                     [](const auto& x, int64_t i) { return x[0]->at((63 - i / 64) * 64 + i % 64); }});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_pipelines() { return joined({products(), numbered_threads(), engine()}); }

}  // namespace tilepilot::stage
