// Names that `T.` does not have, by what to do instead.
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// Upstream's.
constexpr UnsupportedNames kGroups[] = {
    {"write the kernel with tile operators and `T.Parallel` instead",
     "address_of tvm_access_ptr match_all_sync Ramp Broadcast"},
    {"use `T.tma_copy`", "tma_load tma_store"},
    {"use `T.gemm`", "gemm_sp gemm_v1 gemm_v2"},
    {"use arithmetic on single elements: compilers find the vectors", "add2 sub2 mul2 fma2 max2 min2 abs2"},
    {"launch one block a tile, or use `T.Persistent`", "PersistentTileScheduler"},
    {"use `T.alloc_fragment`", "alloc_tmem"},
    {"foreign device code is not compiled", "call_intrin call_pure_extern"},
    {"use `T.sync_threads(barrier_id, arrive_count)`", "named_barrier_arrive"},
    {"pass random numbers as a tensor", "rng_init rng_rand rng_rand_float"},
    {"pass tensors", "handle"},
    {"use float8_e4m3fn or float8_e5m2", "float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz"},
    {"use float4_e2m1fn or float8_e4m3fn", "float4_e2m1_unpacked float6_e2m3fn float6_e3m2fn"},
    {"use the element's type and an axis of that extent: compilers find the vectors",
     "float16x2 float16x4 float16x8 bfloat16x2 bfloat16x4 bfloat16x8 float32x2 float32x4 int8x4 int8x16 int32x4"},
};

// Names of other libraries and languages (PyTorch, NumPy, Triton, CUDA): how the same is written here.
constexpr UnsupportedNames kIdioms[] = {
    {"write `T.max(x, 0)`", "relu"},
    {"write `T.min(T.max(x, 0), 6)`", "relu6"},
    {"write `x * T.sigmoid(x)`", "silu swish"},
    {"write `0.5 * x * (1 + T.erf(x * 0.7071067811865476))`", "gelu"},
    {"write `T.max(x, 0) + T.log1p(T.exp(-T.abs(x)))`", "softplus"},
    {"write `x * T.tanh(y)` with y the softplus of x, `T.max(x, 0) + T.log1p(T.exp(-T.abs(x)))`", "mish"},
    {"write `T.if_then_else(x > 0, x, alpha * x)`", "leaky_relu prelu"},
    {"write `T.if_then_else(x > 0, x, alpha * (T.exp(x) - 1))`", "elu"},
    {"write `T.min(T.max(x / 6 + 0.5, 0), 1)`", "hardsigmoid"},
    {"write `x * T.min(T.max(x / 6 + 0.5, 0), 1)`", "hardswish"},
    {"write `T.exp(x) - 1`", "expm1"},
    {"write `x * x`", "square"},
    {"write `1 / x`", "reciprocal rcp"},
    {"write `T.if_then_else(condition, a, b)`", "where select cond ternary"},
    {"use `T.max`", "maximum fmax fmaxf"},
    {"use `T.min`", "minimum fmin fminf"},
    {"use `T.clamp(x, low, high)`", "clip"},
    {"use `T.exp`", "expf"},
    {"use `T.sqrt`", "sqrtf"},
    {"use `T.rsqrt`", "rsqrtf"},
    {"use `T.tanh`", "tanhf"},
    {"use `T.log`", "logf ln"},
    {"use `T.abs`", "absolute"},
    {"use `T.pow`", "powf"},
    {"use `T.reduce_sum(tile, out, dim=...)` on a tile", "sum reduce_add add_reduce"},
    {"use `T.reduce_max(tile, out, dim=...)` on a tile", "amax max_reduce"},
    {"use `T.reduce_min(tile, out, dim=...)` on a tile", "amin min_reduce"},
    {"use `T.reduce_sum` and divide by the number of elements", "mean reduce_mean avg"},
    {"use `T.reduce_max`, `T.exp` of the differences, `T.reduce_sum`, and divide", "softmax log_softmax"},
    {"use `T.gemm(a, b, c)` on tiles: it adds to c", "matmul dot mm bmm einsum linear addmm mma"},
    {"use `T.copy`, or read the tensor by its indices", "load tl_load ld"},
    {"use `T.copy`, or assign to the tensor by its indices", "store tl_store st"},
    {"use `T.alloc_fragment` (registers) or `T.alloc_shared`, then `T.clear`", "zeros zeros_like full full_like ones"},
    {"use the index of `for i in T.Parallel(n)`", "arange iota program_id"},
    {"use the names of `with T.Kernel(...) as (bx, by)`", "blockIdx blockIdx_x block_id"},
    {"use `T.get_thread_binding()`, or leave threads to `T.Parallel`", "threadIdx threadIdx_x thread_id tid"},
    {"use `T.sync_threads()`; most programs need none", "syncthreads __syncthreads barrier debug_barrier"},
    {"use `T.atomic_add`", "atomicAdd atomic_sum"},
    {"use `T.Parallel` over the elements", "map elementwise vectorize"},
    {"use `T.serial`", "range for_range static_range"},
    {"use `T.ceildiv`", "ceil_div div_up"},
    {"use `T.cast(value, dtype)`", "to astype convert"},
    {"use `T.alloc_shared`", "shared smem alloc_smem shared_memory"},
    {"use `T.alloc_fragment`", "register registers alloc_registers fragment alloc_reg"},
    {"use `T.transpose(src, dst)` on tiles", "trans"},
};

// Whether a list of words separated by blanks holds `word`.
bool holds(std::string_view words, std::string_view word) {
  for (size_t at = 0; (at = words.find(word, at)) != std::string_view::npos; ++at) {
    bool begins = at == 0 || words[at - 1] == ' ';
    size_t end = at + word.size();
    if (begins && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

std::optional<std::string_view> advice_in(std::span<const UnsupportedNames> groups, std::string_view name) {
  for (const UnsupportedNames& group : groups)
    if (holds(group.names, name)) return group.advice;
  return std::nullopt;
}

}  // namespace

std::span<const UnsupportedNames> unsupported_names() { return kGroups; }
std::span<const UnsupportedNames> foreign_names() { return kIdioms; }

std::optional<std::string_view> unsupported_advice(std::string_view name) { return advice_in(kGroups, name); }
std::optional<std::string_view> foreign_advice(std::string_view name) { return advice_in(kIdioms, name); }

}  // namespace tilepilot::stage
