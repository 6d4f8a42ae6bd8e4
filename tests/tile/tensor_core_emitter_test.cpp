// Products that the lanes of warps compute from operands in registers, by `TensorCoreIntrinEmitter`.
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

constexpr const char* kProduct = R"(
from tilelang.cuda.intrinsics.macro.mma_macro_generator import TensorCoreIntrinEmitter

@tilelang.jit(out_idx=[-1])
def product(M, N, K, a_type, c_type, b_transposed=True, warps=(2, 1), is_m_first=False, tile_n=16):
    tile_m, chunk = 32, 32
    emitter = TensorCoreIntrinEmitter(
        a_dtype=a_type, b_dtype=a_type, accum_dtype=c_type, a_transposed=False, b_transposed=b_transposed,
        block_row_warps=warps[0], block_col_warps=warps[1], warp_row_tiles=tile_m, warp_col_tiles=tile_n,
        chunk=chunk, is_m_first=is_m_first)
    block_m, block_n = warps[0] * tile_m, warps[1] * tile_n
    b_shape = (N, K) if b_transposed else (K, N)
    b_tile = (block_n, chunk) if b_transposed else (chunk, block_n)

    @T.prim_func
    def main(A: T.Tensor((M, K), a_type), B: T.Tensor(b_shape, a_type), C: T.Tensor((M, N), c_type)):
        with T.Kernel(N // block_n, M // block_m, threads=32 * warps[0] * warps[1]) as (bx, by):
            A_shared = T.alloc_shared((block_m, chunk), a_type)
            B_shared = T.alloc_shared(b_tile, a_type)
            C_shared = T.alloc_shared((block_m // 16, block_n // emitter.n_dim, 16, emitter.n_dim), c_type)
            A_local = T.alloc_local((emitter.warp_rows * emitter.local_size_a,), a_type)
            B_local = T.alloc_local((emitter.warp_cols * emitter.local_size_b,), a_type)
            C_local = T.alloc_local((emitter.warp_rows * emitter.warp_cols * emitter.local_size_out,), c_type)
            T.clear(C_local)
            for ko in T.serial(K // chunk):
                T.copy(A[by * block_m, ko * chunk], A_shared)
                if b_transposed:
                    T.copy(B[bx * block_n, ko * chunk], B_shared)
                else:
                    T.copy(B[ko * chunk, bx * block_n], B_shared)
                for ki in T.serial(chunk // emitter.micro_size_k):
                    emitter.ldmatrix_a(A_local, A_shared, ki)
                    emitter.ldmatrix_b(B_local, B_shared, ki)
                    emitter.mma(A_local, B_local, C_local)
            emitter.stmatrix(C_local, C_shared)
            for i, j in T.Parallel(block_m, block_n):
                C[by * block_m + i, bx * block_n + j] = C_shared[
                    i // 16, j // emitter.n_dim, i % 16, j % emitter.n_dim]
    return main
)";

class TensorCoreEmitter : public Run {
 protected:
  TensorCoreEmitter() : Run(checked_backend()) {
    install_script(interpreter_, {"program.py", {}, tile_modules()});
    load(kProduct);
  }

  void expect_product(const std::string& build, ir::DType type, bool b_transposed, double tolerance) {
    const int64_t m = 64, n = 32, k = 64;
    const Array a = random_array(type, {m, k}, 1);
    const Array b = b_transposed ? random_array(type, {n, k}, 2) : random_array(type, {k, n}, 2);
    expect_near(call(build + "(x0, x1)", {a, b}), tolerance, [&](int64_t at) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += a->at(at / n * k + i) * b->at(b_transposed ? at % n * k + i : i * n + at % n);
      return sum;
    });
  }
};

// What ldmatrix reads at once, 16 bytes of each of eight rows, lies in all banks.
TEST_F(TensorCoreEmitter, SwizzlesTiles) {
  load(R"(
from tilelang.intrinsics import get_swizzle_layout

def pieces(columns, dtype, row_bytes, size, column):
    layout = T.Layout((16, columns), lambda i, j: list(get_swizzle_layout(i, j, columns, dtype)))
    places = [layout.map_forward_index([row, column]) for row in range(8)]
    assert all(tile == column * size // row_bytes and row == i for i, (tile, row, _) in enumerate(places))
    return sorted((row * row_bytes + within * size) % 128 // 16 for _, row, within in places)

all_banks = list(range(8))
)");
  EXPECT_TRUE(holds("pieces(64, 'float16', 128, 2, 41) == all_banks"));
  EXPECT_TRUE(holds("pieces(128, 'float16', 128, 2, 100) == all_banks"));
  EXPECT_TRUE(holds("pieces(32, 'float16', 64, 2, 9) == all_banks"));
  EXPECT_TRUE(holds("pieces(32, 'int8', 32, 1, 17) == all_banks"));
}

TEST_F(TensorCoreEmitter, HalfOperands) {
  expect_product("product(64, 32, 64, 'float16', 'float32')", ir::kFloat16, true, 1e-4);
}

TEST_F(TensorCoreEmitter, OperandsAsTheyLieAndSeveralWarpsAlongN) {
  expect_product("product(64, 32, 64, 'float16', 'float32', False, (1, 2), True)", ir::kFloat16, false, 1e-4);
}

TEST_F(TensorCoreEmitter, EightColumnsAWarp) {
  expect_product("product(64, 32, 64, 'bfloat16', 'float32', False, (1, 1), False, 8)", ir::kBFloat16, false, 1e-4);
}

TEST_F(TensorCoreEmitter, WithoutAnInstructionIsToldAndRight) {
  std::string printed;
  interpreter_.set_print([&](const std::string& text) { printed += text; });
  expect_product("product(64, 32, 64, 'int8', 'float32')", ir::kInt8, true, 0);
  EXPECT_NE(printed.find("no tensor core multiplies int8 by int8 into float32"), std::string::npos) << printed;
}

TEST_F(TensorCoreEmitter, Bytes) { expect_product("product(64, 32, 64, 'int8', 'int32')", ir::kInt8, true, 0); }

}  // namespace
}  // namespace tilepilot::stage
