// The tables of `T.` functions, one for each concept; module.cpp registers them all and `tile_names()` documents them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/stage/tile/kernel/arguments.h"

namespace tilepilot::stage {

const std::vector<TileFunction>& launch_functions();       // Kernel, alloc_*, dynamic, const, empty
const std::vector<TileFunction>& copy_functions();         // copy, fill, clear
const std::vector<TileFunction>& gemm_functions();         // gemm, wgmma_gemm
const std::vector<TileFunction>& reduction_functions();    // reduce_*
const std::vector<TileFunction>& predicate_functions();    // any_of, all_of
const std::vector<TileFunction>& loop_functions();         // Parallel, Pipelined, serial, ...
const std::vector<TileFunction>& persistent_functions();   // Persistent
const std::vector<TileFunction>& maths_functions();        // exp, max, ceildiv, ...
const std::vector<TileFunction>& ieee_functions();         // ieee_add, ...
const std::vector<TileFunction>& integer_functions();      // ceildiv, linear_index, popcount, ...
const std::vector<TileFunction>& rearranging_functions();  // transpose, im2col
const std::vector<TileFunction>& value_functions();        // cast, if_then_else, infinity, ...
const std::vector<TileFunction>& hint_functions();         // use_swizzle, annotate_layout, ...
const std::vector<TileFunction>& thread_functions();       // get_thread_binding, sync_threads, ...
const std::vector<TileFunction>& warp_functions();         // shfl_sync, any_sync, warp_reduce_sum, ...
const std::vector<TileFunction>& matrix_functions();       // ptx_ldmatrix, ptx_mma
const std::vector<TileFunction>& debug_functions();        // print, device_assert
const std::vector<TileFunction>& atomic_functions();       // atomic_add, ...
const std::vector<TileFunction>& all_reduce_functions();   // tvm_thread_allreduce and what stands around it
const std::vector<TileFunction>& scan_functions();         // cumsum, cummax
const std::vector<TileFunction>& view_functions();         // reshape, view, alloc_global
const std::vector<TileFunction>& safe_value_functions();   // annotate_safe_value
const std::vector<TileFunction>& address_functions();      // make_tensor
const std::vector<TileFunction>& layout_functions();       // Layout, Fragment, annotate_layout
const std::vector<TileFunction>& barrier_functions();      // alloc_barrier, barrier_wait, ...
const std::vector<TileFunction>& async_functions();        // tma_copy, wgmma_gemm, ptx_wait_group, ws, ...
const std::vector<TileFunction>& foreign_functions();      // call_extern, import_source, access_ptr
const std::vector<TileFunction>& reducer_functions();      // alloc_reducer, ...

// a / b rounded up; a compile-time integer if both are.
Result<Value> ceil_divide(TileContext& context, const Value& a, const Value& b, Span span);

// What `buffer[indices] = value` contributes to a reducer of that operation, if `value` combines it with the element.
std::optional<ir::Expr> contribution(ir::AtomicOp op, const ir::Expr& value, const ir::Buffer& buffer,
                                     const std::vector<ir::Expr>& indices);

// The tables by concept, in the order of docs/language.md.
struct LanguageSection {
  std::string_view title;
  const std::vector<TileFunction>& (*table)();
  bool for_gpus =
      false;  // a processor takes it for programs that a GPU was meant for; it makes none of them faster there
};
std::span<const LanguageSection> language_sections();
// Names of `T.` that no table has: decorators, annotations.
std::span<const TileName> other_names();

// For names that upstream has and this version does not: what to do instead (may be empty).
std::optional<std::string_view> unsupported_advice(std::string_view name);
struct UnsupportedNames {
  std::string_view advice;
  std::string_view names;  // separated by blanks
};
std::span<const UnsupportedNames> unsupported_names();
// For names that neither has, but other libraries and languages do: how the same is written.
std::optional<std::string_view> foreign_advice(std::string_view name);
std::span<const UnsupportedNames> foreign_names();

}  // namespace tilepilot::stage
