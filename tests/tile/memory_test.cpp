// Reads outside tensors that give another value than 0, tensors by their address, and launches of foreign source.
#include <fmt/format.h>

#include <bit>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using MemoryTest = Run;

TEST_F(MemoryTest, ReadsOutsideGiveTheSafeValue) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def shifted(M, N, block):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            T.annotate_safe_value({A: -7.0})
            s = T.alloc_shared((M, block), "float32")
            T.copy(A[0, bx * block + 3], s)
            for i, j in T.Parallel(M, block):
                B[i, bx * block + j] = s[i, j] * 100 + A[i - 1, bx * block + j]
    return main

@tilelang.jit(out_idx=[-1])
def last_kernel_alone(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float16"), B: T.Tensor((2, N), "float32")):
        with T.Kernel(1, threads=64) as bx:
            T.annotate_safe_value({A: 5})
            for i in T.Parallel(N):
                B[0, i] = A[i + 1]
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(N):
                B[1, i] = A[i + 1]
    return main
)");
  const Array a = random_array(ir::kFloat32, {4, 10}, 3);
  expect_near(call("shifted(4, 10, 8)(x0)", {a}), 1e-4, [&](int64_t at) {
    const int64_t i = at / 10, j = at % 10;
    const double right = j + 3 < 10 ? a->at(i * 10 + j + 3) : -7, above = i > 0 ? a->at(at - 10) : -7;
    return right * 100 + above;
  });
  const Array line = testing::make_array(ir::kFloat16, {6}, [](int64_t i) { return double(i); });
  expect_near(call("last_kernel_alone(6)(x0)", {line}), 0, [](int64_t at) {
    return at % 6 < 5 ? double(at % 6 + 1) : at < 6 ? 5 : 0;
  });
}

// As if all of a box were read before any of the other one is written.
TEST_F(MemoryTest, CopiesWithinABufferMayOverlap) {
  load(R"(
@tilelang.jit
def shifted(scope):
    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((3, 32, 64), "float32")):
        with T.Kernel(1, threads=64) as bx:
            s = T.alloc_shared((32, 64), "float32") if scope else T.alloc_fragment((32, 64), "float32")
            T.copy(A, s)
            T.copy(s[0:31, :], s[1:32, :])
            T.copy(s, B[0, 0, 0])
            T.copy(A, s)
            T.copy(s[0:31, 0:63], s[1:32, 1:64])
            T.copy(s, B[1, 0, 0])
            T.copy(A[0:31, :], A[1:32, :])
            T.copy(A, B[2, 0, 0])
    return main
)");
  for (const bool shared : {false, true}) {
    const Array a = random_array(ir::kFloat32, {32, 64}, 3), before = random_array(ir::kFloat32, {32, 64}, 3);
    const Array b = random_array(ir::kFloat32, {3, 32, 64}, 4);
    call(shared ? "shifted(True)(x0, x1) or x1" : "shifted(False)(x0, x1) or x1", {a, b});
    expect_near(b, 0, [&](int64_t at) {
      const int64_t box = at / (32 * 64), i = at / 64 % 32, j = at % 64;
      const bool moved = i > 0 && (box != 1 || j > 0);
      return before->at(i * 64 + j - (moved ? 64 + (box == 1) : 0));
    });
  }
}

TEST_F(MemoryTest, TensorsByTheirAddress) {
  load(R"(
@tilelang.jit
def sums(count, M, N):
    @T.prim_func
    def main(tensors: T.Tensor((count,), T.ptr), to: T.ptr):
        with T.Kernel(count, threads=64) as b:
            A = T.make_tensor(tensors[b], (M, N), "float32")
            out = T.make_tensor(to, (count, M), T.float32, strides=(M, 1))
            a = T.alloc_shared((M, 8), "float32")
            sum = T.alloc_fragment((M,), "float32")
            T.clear(sum)
            for k in T.Pipelined(T.ceildiv(N, 8), num_stages=2):
                T.copy(A[0, k * 8], a)
                T.reduce_sum(a, sum, dim=1, clear=False)
            for i in T.Parallel(M):
                out[b, i] = sum[i]
    return main
)");
  const Array first = random_array(ir::kFloat32, {3, 20}, 1), second = random_array(ir::kFloat32, {3, 20}, 2);
  const Array out = testing::make_array(ir::kFloat32, {2, 3}, [](int64_t) { return 0.0; });
  const Array table = testing::make_array(ir::kInt64, {2}, [](int64_t) { return 0.0; });
  auto* addresses = static_cast<int64_t*>(table->view.data);
  addresses[0] = std::bit_cast<int64_t>(first->view.data);
  addresses[1] = std::bit_cast<int64_t>(second->view.data);
  ASSERT_EQ(failure(fmt::format("sums(2, 3, 20)(x0, {})", std::bit_cast<int64_t>(out->view.data)), {table}), "");
  for (int64_t at = 0; at < 6; ++at) {
    double sum = 0;
    for (int64_t k = 0; k < 20; ++k) sum += (at < 3 ? first : second)->at(at % 3 * 20 + k);
    EXPECT_NEAR(out->at(at), sum, 1e-4) << at;
  }
}

TEST_F(MemoryTest, ClustersAreLaunchedAsBlocks) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def twice(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.ClusterKernel(N, cluster_dims=2, threads=32) as b:
            B[b] = A[b] * 2
    return main
)");
  const Array a = random_array(ir::kFloat32, {6}, 5);
  expect_near(call("twice(6)(x0)", {a}), 0, [&](int64_t i) { return a->at(i) * 2; });
}

TEST_F(MemoryTest, fail_ForeignSourceIsStagedAndNotCompiled) {
  load(R"(
@tilelang.jit
def foreign(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        T.CUDASourceCodeKernel(N, threads=32, source_code_or_path="extern __global__ void twice(float *a);", entry_name="twice")
    return main
)");
  const Array a = random_array(ir::kFloat32, {6}, 5);
  const std::string message = failure("foreign(6)(x0)", {a});
  EXPECT_NE(message.find("unsupported_tile_feature"), std::string::npos) << message;
  EXPECT_NE(message.find("twice"), std::string::npos) << message;
  EXPECT_EQ(staged_, 1);
}

}  // namespace
}  // namespace tilepilot::stage
