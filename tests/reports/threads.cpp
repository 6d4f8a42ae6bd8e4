// Threads that exchange elements of shared memory without barriers of the program's own.
#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

std::vector<Report> exchanges() {
  std::vector<Report> reports;
  reports.push_back({2556,
                     "AnExchangeAmongFortyEightThreads",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "float32")
        B[tx] = -1.0
        if tx < 48:
            s[tx] = A[tx]
            B[tx] = s[47 - tx]
)",
                     {counting(ir::kFloat32, {64})},
                     [](const auto& x, int64_t i) { return i < 48 ? x[0]->at(47 - i) : -1; }});
  reports.push_back({2612,
                     "AnExchangeInALoopOfSomeThreads",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "float32")
        sum = T.alloc_local((1,), "float32")
        sum[0] = 0.0
        if tx % 4 == 0:
            for r in T.serial(3):
                s[tx] = A[tx] + r
                sum[0] += s[(tx + 4) % 64]
        B[tx] = sum[0]
)",
                     {counting(ir::kFloat32, {64})},
                     [](const auto& x, int64_t i) { return i % 4 == 0 ? 3 * x[0]->at((i + 4) % 64) + 3 : 0; }});
  reports.push_back({1604,
                     "OneWarpWritesWhatAllRead",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(B: T.Tensor((512,), "float32")):
    with T.Kernel(1, threads=512):
        s = T.alloc_shared((32,), "float32")
        t = T.alloc_shared((32,), "float32")
        tx = T.get_thread_binding()
        if tx < 32:
            s[tx] = tx
            t[tx] = tx
        B[tx] = s[tx % 32] + 2.0 * t[31 - tx % 32]
)",
                     {},
                     [](const auto&, int64_t i) { return static_cast<double>(i % 32 + 2 * (31 - i % 32)); }});
  reports.push_back({2192,
                     "RolesThatShareALoop",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((8, 32), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((2, 32), "float32")
        total = T.alloc_fragment((32,), "float32")
        full = T.alloc_barrier([128, 128])
        empty = T.alloc_barrier([128, 128])
        with T.ws(0):
            T.clear(total)
        for k in T.serial(8):
            with T.ws(1):
                T.barrier_wait(empty[k % 2], ((k // 2) % 2) ^ 1)
                T.copy(A[k, 0:32], s[k % 2, 0:32])
                T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.barrier_wait(full[k % 2], (k // 2) % 2)
                for i in T.Parallel(32):
                    total[i] += s[k % 2, i]
                T.barrier_arrive(empty[k % 2])
        with T.ws(0):
            T.copy(total, B)
)",
                     {counting(ir::kFloat32, {8, 32})},
                     [](const auto&, int64_t i) { return static_cast<double>(32 * 28 + 8 * i); }});
  reports.push_back({1026,
                     "EveryOtherThreadWritesToItsNeighbour",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        tx = T.get_thread_binding()
        s = T.alloc_shared((32,), "float32")
        s[tx] = A[tx]
        if tx % 2 == 0:
            a = s[tx]
            s[tx ^ 1] = a
        B[tx] = s[tx]
)",
                     {counting(ir::kFloat32, {32})},
                     [](const auto&, int64_t i) { return static_cast<double>(i / 2 * 2); }});
  return reports;
}

std::vector<Report> clears() {
  std::vector<Report> reports;
  reports.push_back({2699,
                     "ATileClearedAfterItsLastRead",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((2, 128), "float32"), B: T.Tensor((2, 128), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((128,), "float32")
        f = T.alloc_fragment((128,), "float32")
        for r in T.serial(2):
            T.copy(A[r, 0], s)
            for i in T.Parallel(128):
                f[i] = s[127 - i]
            T.clear(s)
            for i in T.Parallel(128):
                B[r, i] = f[i] + s[(i + 1) % 128]
)",
                     {counting(ir::kFloat32, {2, 128})},
                     [](const auto& x, int64_t i) { return x[0]->at(i / 128 * 128 + 127 - i % 128); }});
  reports.push_back({2703,
                     "ATileClearedThenFilledInPart",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((128,), "float32")
        T.clear(s)
        if tx < 64:
            s[127 - tx] = A[tx]
        B[tx] = s[(tx + 64) % 128]
)",
                     {counting(ir::kFloat32, {64})},
                     [](const auto& x, int64_t i) { return i < 64 ? x[0]->at(63 - i) : 0; }});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_threads() { return joined({exchanges(), clears()}); }

}  // namespace tilepilot::stage
