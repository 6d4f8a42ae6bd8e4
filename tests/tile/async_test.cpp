// Copies and gemms that do not wait, hardware barriers, roles and foreign functions: what the CPU target runs of them,
// what it refuses, and what is wrong on any target.
#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "tests/rounds.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Async : public Run {
 protected:
  Async() : Run(checked_backend()) {}
  // The staged program of an expression, which must be valid IR.
  std::string staged(const std::string& expression) {
    auto value = evaluate(expression, {});
    if (!value.ok()) return render(sources_, value.error());
    const ir::Program* program = program_of(*value);
    if (!program) return "no program";
    DiagnosticList diagnostics;
    EXPECT_TRUE(ir::verify(*program, diagnostics)) << render(sources_, diagnostics);
    return ir::to_text(*program);
  }
};

constexpr const char* kGemm = R"(
@tilelang.jit(out_idx=[-1])
def gemm(style):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((32, 64), "float32")
            full = T.alloc_barrier([128, 128])
            T.clear(c)
            for k in T.serial(2):
                if style == "tma":
                    T.tma_copy(A[bx * 32 : bx * 32 + 32, k * 32 : k * 32 + 32], a, barrier=full[0])
                    T.tma_copy(B[k * 32, 0], b, barrier=full[0])
                    T.barrier_arrive(full[0])
                    T.mbarrier_wait_parity(full[0], k % 2)
                else:
                    T.async_copy(A[bx * 32 : bx * 32 + 32, k * 32 : k * 32 + 32], a)
                    T.async_copy(B[k * 32, 0], b)
                    T.ptx_wait_group(0)
                T.fence_proxy_async()
                T.wgmma_gemm(a, b, c)
                T.wait_wgmma(0)
            T.copy(c, C[bx * 32, 0])
            T.tma_store_wait()
    return main
)";

TEST_F(Async, RunsOnTheCpuInProgramOrder) {
  load(kGemm);
  auto a = random_array(ir::kFloat16, {64, 64}, 1), b = random_array(ir::kFloat16, {64, 64}, 2);
  for (const char* style : {"gemm('tma')(x0, x1)", "gemm('cp')(x0, x1)"})
    expect_near(call(style, {a, b}), 1e-4, [&](int64_t i) {
      double sum = 0;
      for (int64_t k = 0; k < 64; ++k) sum += a->at(i / 64 * 64 + k) * b->at(k * 64 + i % 64);
      return sum;
    });
  EXPECT_THAT(
      staged("gemm('tma')"),
      AllOf(HasSubstr("barrier full: uint64[2] arrivals [128, 128]"), HasSubstr("on full[0] arrive"),
            HasSubstr("-> a mode bulk_load counting full[0]"), HasSubstr("on full[0] wait k % 2"),
            HasSubstr("gemm c += a @ b asynchronous"), HasSubstr("async wait_gemms"), HasSubstr("async wait_stores")));
}

TEST_F(Async, StagesClusters) {
  load(R"(
@tilelang.jit
def cluster(dims, mask):
    @T.prim_func
    def main(A: T.Tensor((8, 64, 64), "float16"), C: T.Tensor((8,), "int32")):
        with T.ClusterKernel(8, threads=128, cluster_dims=dims) as bx:
            a = T.alloc_shared((64, 64), "float16")
            full = T.alloc_cluster_barrier([128])
            T.tma_copy(A[0, 0:64, 0:64], a, barrier=full, cluster_mask=mask)
            T.mbarrier_arrive(full, 1)
            T.copy_cluster(A[1, 0:64, 0:64], a, cluster_mask=mask)
            T.cluster_arrive()
            T.cluster_wait()
            C[bx] = T.block_rank_in_cluster()
    return main
)");
  EXPECT_THAT(staged("cluster((4, 1, 1), 5)"),
              AllOf(HasSubstr("threads 128 cluster 4 {"), HasSubstr("counting full into 5"),
                    HasSubstr("on full arrive into 1"), HasSubstr("-> a into 5\n"), HasSubstr("async arrive_cluster\n"),
                    HasSubstr("sync cluster_wait\n"), HasSubstr("C[bx] = bx % 4")));
  EXPECT_THAT(staged("cluster(1, 0)"), AllOf(Not(HasSubstr("into")), HasSubstr("C[bx] = 0")));
  EXPECT_THAT(staged("cluster(3, 1)"), HasSubstr("no multiple of 3"));
  EXPECT_THAT(staged("cluster(16, 1)"), HasSubstr("a cluster of 16 blocks is too large"));
  EXPECT_THAT(staged("cluster(2, 4)"), HasSubstr("`cluster_mask` 4 in a cluster of 2 blocks"));
}

TEST_F(Async, StagesCopiesIntoOtherBlocks) {
  load(R"(
@tilelang.jit
def send(dims, block, counted, scope="shared", mask=None):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32")):
        with T.ClusterKernel(8, threads=128, cluster_dims=dims) as bx:
            a = T.alloc_buffer((64,), "float32", scope=scope)
            b = T.alloc_shared((64,), "float32")
            full = T.alloc_cluster_barrier([1])
            rank = T.block_rank_in_cluster()
            if counted:
                T.copy_cluster(a, b, dst_block=rank ^ block, remote_barrier=full[0])
            elif mask:
                T.copy_cluster(a, b, dst_block=block, cluster_mask=mask)
            else:
                T.copy_cluster(a, b, dst_block=block)
    return main
)");
  EXPECT_THAT(staged("send(2, 1, True)"), HasSubstr("copy a -> b mode bulk_load counting full into_block rank ^ 1"));
  EXPECT_THAT(staged("send(2, 1, False)"), HasSubstr("-> b into_block 1\n"));
  EXPECT_THAT(staged("send(2, 2, False)"), HasSubstr("block 2 in a cluster of 2 blocks"));
  EXPECT_THAT(staged("send(1, 0, False)"), HasSubstr("each block runs alone"));
  EXPECT_THAT(staged("send(2, 1, False, \"local.fragment\")"), HasSubstr("goes from shared memory to shared memory"));
  EXPECT_THAT(staged("send(2, 1, False, \"shared\", 3)"), HasSubstr("not both"));
}

constexpr const char* kRoles = R"(
@tilelang.jit(out_idx=[-1])
def roles(which):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            if which == "roles":
                with T.ws(0):
                    T.tma_copy(A, a, barrier=bar)
                    T.barrier_arrive(bar)
                with T.ws(1):
                    T.barrier_wait(bar, 0)
                    T.copy(a, C)
            elif which == "deadlock":
                with T.ws(0):
                    T.barrier_wait(bar, 0)
                with T.ws(1):
                    T.barrier_wait(bar, 0)
                    T.barrier_arrive(bar)
            elif which == "beyond":
                with T.ws(2):
                    T.copy(A, a)
            elif which == "no barrier":
                T.tma_copy(A, a)
            elif which == "wrong barrier":
                T.tma_copy(A, a, barrier=a)
            elif which == "threads":
                if T.get_thread_binding() < 128:
                    T.barrier_arrive(bar)
            elif which == "some":
                T.get_thread_binding()
                T.sync_threads(3, 128)
            elif which == "grid":
                T.sync_grid()
            elif which == "extern":
                T.import_source("__device__ int f(half* p) { return 1; }")
                C[0, 0] = T.cast(T.call_extern("int32", "f", T.access_ptr(a[0, 8], "r")), "float16")
    return main
)";

TEST_F(Async, StagesRolesAndForeignFunctions) {
  load(kRoles);
  EXPECT_THAT(staged("roles('roles')"), AllOf(HasSubstr("roles 0 {\n"), HasSubstr("roles 1 {\n      on bar wait 0")));
  EXPECT_THAT(staged("roles('extern')"), AllOf(HasSubstr("foreign \"__device__ int f(half* p) { return 1; }\""),
                                               HasSubstr("extern \"f\"(&a[0, 8]) -> result: int32")));
  EXPECT_THAT(staged("roles('some')"), HasSubstr("sync on 3 of 128"));
  EXPECT_THAT(staged("roles('grid')"), HasSubstr("sync grid"));
}

TEST_F(Async, CpuRefusesWhatItDoesNotRun) {
  load(kRoles);
  auto a = random_array(ir::kFloat16, {64, 64}, 1);
  EXPECT_THAT(failure("roles('extern')(x0)", {a}), HasSubstr("`f` is a function of foreign device source"));
}

TEST_F(Async, RolesWaitForEachOther) {
  load(kRoles);
  auto a = random_array(ir::kFloat16, {64, 64}, 1);
  expect_near(call("roles('roles')(x0)", {a}), 0, [&](int64_t i) { return a->at(i); });
  EXPECT_EQ(failure("roles('threads')(x0)", {a}), "");
  EXPECT_EQ(failure("roles('some')(x0)", {a}), "");
  EXPECT_THAT(failure("roles('deadlock')(x0)", {a}),
              HasSubstr("deadlock: every role of the block waits on a barrier (block 0)"));
}

TEST_F(Async, AProducerAndTwoConsumers) {
  load(R"(
@tilelang.jit
def pipelined(A, B, stages):
    M, K, N = T.const("M, K, N")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty([M, N], "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 32), threads=384) as (bx, by):
        a = T.alloc_shared((stages, 32, 16), "float16")
        b = T.alloc_shared((stages, 16, 64), "float16")
        left = T.alloc_fragment((32, 32), "float32")
        right = T.alloc_fragment((32, 32), "float32")
        full = T.alloc_barrier([128] * stages)
        empty = T.alloc_barrier([256] * stages)
        tx = T.get_thread_binding()
        if tx < 128:
            for k in range(T.ceildiv(K, 16)):
                T.mbarrier_wait_parity(empty[k % stages], (k // stages) % 2 ^ 1)
                T.tma_copy(A[by * 32, k * 16], a[k % stages, :, :], barrier=full[k % stages])
                T.tma_copy(B[k * 16, bx * 64], b[k % stages, :, :], barrier=full[k % stages])
                T.mbarrier_arrive(full[k % stages])
        elif tx < 256:
            T.clear(left)
            for k in range(T.ceildiv(K, 16)):
                T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                T.gemm(a[k % stages, :, :], b[k % stages, :, 0:32], left)
                T.mbarrier_arrive(empty[k % stages])
            T.copy(left, C[by * 32, bx * 64])
        else:
            T.clear(right)
            for k in range(T.ceildiv(K, 16)):
                T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                T.gemm(a[k % stages, :, :], b[k % stages, :, 32:64], right)
                T.mbarrier_arrive(empty[k % stages])
            T.copy(right, C[by * 32, bx * 64 + 32])
    return C
)");
  auto a = random_array(ir::kFloat16, {50, 70}, 1), b = random_array(ir::kFloat16, {70, 90}, 2);
  for (int stages = 3; stages > 3 - rounds(3); stages -= 2)
    expect_near(call("pipelined(x0, x1, " + std::to_string(stages) + ")", {a, b}), 1e-4, [&](int64_t i) {
      double sum = 0;
      for (int64_t k = 0; k < 70; ++k) sum += a->at(i / 90 * 70 + k) * b->at(k * 90 + i % 90);
      return sum;
    });
}

TEST_F(Async, Errors) {
  load(kRoles);
  EXPECT_THAT(failure("roles('beyond')", {}), HasSubstr("warpgroup 2 in a block of 256 threads"));
  EXPECT_THAT(failure("roles('no barrier')", {}), HasSubstr("`T.tma_copy` from global memory needs a `barrier`"));
  EXPECT_THAT(failure("roles('wrong barrier')", {}), HasSubstr("works on a barrier, and `a` is none"));
}

TEST_F(Async, EachThreadCopiesItsElements) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def gather(N):
    @T.prim_func
    def main(A: T.Tensor((N, 8), "float16"), I: T.Tensor((32,), "int32"), C: T.Tensor((32, 8), "float16")):
        with T.Kernel(1, threads=32) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((32, 8), "float16")
            T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[I[tx], 0], "r"), 8, tx % 4 != 0)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            T.copy(s, C)
    return main
)");
  auto a = random_array(ir::kFloat16, {50, 8}, 3);
  auto rows = testing::make_array(ir::kInt32, {32}, [](int64_t i) { return double(i * 7 % 50); });
  expect_near(call("gather(50)(x0, x1)", {a, rows}), 0,
              [&](int64_t i) { return i / 8 % 4 == 0 ? 0 : a->at(i / 8 * 7 % 50 * 8 + i % 8); });
}

}  // namespace
}  // namespace tilepilot::stage
