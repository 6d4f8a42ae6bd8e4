// Names that upstream's `T.` has and this version does not, by what to do instead.
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

constexpr UnsupportedNames kGroups[] = {
    {"write the kernel with tile operators and `T.Parallel` instead",
     "address_of tvm_access_ptr match_any_sync match_all_sync Ramp Broadcast"},
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

// Whether a list of words separated by blanks holds `word`.
bool holds(std::string_view words, std::string_view word) {
  for (size_t at = 0; (at = words.find(word, at)) != std::string_view::npos; ++at) {
    bool begins = at == 0 || words[at - 1] == ' ';
    size_t end = at + word.size();
    if (begins && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

std::span<const UnsupportedNames> unsupported_names() { return kGroups; }

std::optional<std::string_view> unsupported_advice(std::string_view name) {
  for (const UnsupportedNames& group : kGroups)
    if (holds(group.names, name)) return group.advice;
  return std::nullopt;
}

}  // namespace tilepilot::stage
