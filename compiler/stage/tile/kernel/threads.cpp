// Threads of a block (SIMT): their indices, and barriers between them.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/cluster.h"
#include "compiler/stage/python/objects/objects.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kAxes = 3;

Result<size_t> axis_of(const TileArguments& arguments) {
  int64_t axis = TRY(arguments.integer_or(0, 0));
  if (axis >= 0 && axis < kAxes) return static_cast<size_t>(axis);
  return make_error(DiagnosticKind::value_error, arguments.span(0),
                    fmt::format("a block has thread axes 0 to {}, not {}", kAxes - 1, axis));
}

Value thread_index(const TileArguments& arguments, ProgramBuilder& builder, size_t axis) {
  ir::Expr index = builder.thread_index(axis, arguments.span());
  auto* reference = std::get_if<ir::VarRef>(&index->node);
  return reference ? make_axis(arguments.context(), reference->var, arguments.span())
                   : make_expr(arguments.context(), index);
}

int64_t thread_extent(const ProgramBuilder& builder, size_t axis) {
  auto& threads = builder.kernel().threads;
  return axis < threads.size() ? threads[axis] : 1;
}

Result<Value> get_thread_binding(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  return thread_index(arguments, builder, TRY(axis_of(arguments)));
}

Result<Value> get_thread_bindings(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  std::vector<Value> indices;
  for (size_t axis = 0; axis < builder.kernel().threads.size(); ++axis)
    indices.push_back(thread_index(arguments, builder, axis));
  return make_list(std::move(indices));
}

Result<Value> get_thread_extent(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  return Value(thread_extent(builder, TRY(axis_of(arguments))));
}

Result<Value> get_thread_extents(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  std::vector<Value> extents;
  for (int64_t extent : builder.kernel().threads) extents.emplace_back(extent);
  return make_list(std::move(extents));
}

Value block_index(const TileArguments& arguments, const ProgramBuilder& builder, size_t axis) {
  auto& vars = builder.kernel().block_vars;
  if (axis >= vars.size()) return Value(int64_t{0});
  return make_expr(arguments.context(), ir::var_ref(vars[axis], arguments.span()));
}

Result<Value> get_block_binding(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  return block_index(arguments, builder, TRY(axis_of(arguments)));
}

Result<Value> get_block_bindings(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  std::vector<Value> indices;
  for (size_t axis = 0; axis < builder.kernel().block_vars.size(); ++axis)
    indices.push_back(block_index(arguments, builder, axis));
  return make_list(std::move(indices));
}

// T.thread_binding(n, thread="threadIdx.x"), T.thread_binding(0, n, thread="threadIdx.x"): the extents must be those of
// the launch.
Result<Value> thread_binding(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const std::string thread = arguments.has(2) ? TRY(arguments.text(2)) : "threadIdx.x";
  static constexpr std::string_view kThreads[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
  auto* found = std::find(std::begin(kThreads), std::end(kThreads), thread);
  if (found == std::end(kThreads))
    return make_error(DiagnosticKind::value_error, arguments.span(2),
                      fmt::format("there is no thread axis `{}`", thread),
                      "it is `threadIdx.x`, `threadIdx.y` or `threadIdx.z`");
  const auto axis = static_cast<size_t>(found - std::begin(kThreads));
  const int64_t start = arguments.has(1) ? TRY(arguments.integer(0)) : 0;
  const int64_t stop = TRY(arguments.integer(arguments.has(1) ? 1 : 0));
  if (start != 0 || stop != thread_extent(builder, axis))
    return make_error(DiagnosticKind::invalid_launch, arguments.span(),
                      fmt::format("`{}` runs from {} to {}, but the kernel has {} threads there", thread, start, stop,
                                  thread_extent(builder, axis)),
                      "give `T.Kernel` that many `threads`");
  return thread_index(arguments, builder, axis);
}

Result<Value> barrier(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Sync{}, arguments.span()));
  return Value();
}

// T.sync_threads(barrier_id=, arrive_count=): with a count, a barrier for that many threads of the block.
Result<Value> sync_threads(TileArguments& arguments) {
  if (!arguments.has(1)) return barrier(arguments);
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Sync node{ir::SyncScope::block, TRY(arguments.integer_or(0, 0)), TRY(arguments.integer(1))};
  constexpr int64_t kHardwareBarriers = 16;
  if (node.barrier < 0 || node.barrier >= kHardwareBarriers || node.threads <= 0)
    return make_error(DiagnosticKind::value_error, arguments.span(),
                      fmt::format("barrier {} for {} threads", node.barrier, node.threads),
                      "barriers are numbered 0 to 15, and at least one thread waits at each");
  TRY(builder.emit(node, arguments.span()));
  return Value();
}

Result<Value> sync_grid(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Sync{ir::SyncScope::grid, 0, 0}, arguments.span()));
  return Value();
}

Result<Value> sync_cluster(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Sync{ir::SyncScope::cluster}, arguments.span()));
  return Value();
}

template <ir::AsyncOp op>
Result<Value> arrive_cluster(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Async{op}, arguments.span()));
  return Value();
}

Result<Value> wait_cluster(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Sync{ir::SyncScope::cluster_wait}, arguments.span()));
  return Value();
}

Result<Value> block_rank(TileArguments& arguments) {
  const ProgramBuilder& builder = *TRY(require_kernel(arguments));
  return make_expr(arguments.context(), ir::rank_in_cluster(builder.kernel(), arguments.span()));
}

Result<Value> sync_warp(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Sync{ir::SyncScope::warp}, arguments.span()));
  return Value();
}

// The index of a thread in its block, threadIdx.x fastest.
ir::Expr linear_index(const TileArguments& arguments, ProgramBuilder& builder) {
  ir::Expr index = ir::int_imm(0, ir::kInt32, arguments.span());
  for (size_t axis = builder.kernel().threads.size(); axis-- > 0;) {
    const ir::Expr extent = ir::int_imm(builder.kernel().threads[axis], ir::kInt32, arguments.span());
    index = fold_binary(ir::BinaryOp::add, fold_binary(ir::BinaryOp::mul, index, extent, arguments.span()),
                        builder.thread_index(axis, arguments.span()), arguments.span());
  }
  return index;
}

constexpr int64_t kWarpSize = 32;
constexpr int64_t kWarpsPerGroup = 4;

Result<Value> index_by(TileArguments& arguments, ir::BinaryOp op, int64_t divisor) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::Expr by = ir::int_imm(divisor, ir::kInt32, arguments.span());
  return make_expr(arguments.context(), fold_binary(op, linear_index(arguments, builder), by, arguments.span()));
}
Result<Value> lane_index(TileArguments& arguments) {
  return index_by(arguments, ir::BinaryOp::floor_mod, TRY(arguments.integer_or(0, kWarpSize)));
}
Result<Value> warp_index(TileArguments& arguments) {
  return index_by(arguments, ir::BinaryOp::floor_div, TRY(arguments.integer_or(0, kWarpSize)));
}
Result<Value> warp_group_index(TileArguments& arguments) {
  return index_by(arguments, ir::BinaryOp::floor_div,
                  TRY(arguments.integer_or(0, kWarpSize)) * TRY(arguments.integer_or(1, kWarpsPerGroup)));
}

// T.shuffle_elect(extent): one thread of each `extent`; of the block for 0.
Result<Value> shuffle_elect(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const int64_t extent = TRY(arguments.integer(0));
  ir::Expr index = linear_index(arguments, builder);
  if (extent > 0)
    index = fold_binary(ir::BinaryOp::floor_mod, index, ir::int_imm(extent, ir::kInt32), arguments.span());
  const ir::Expr zero = ir::int_imm(0, ir::kInt32, arguments.span());
  return make_expr(arguments.context(), fold_binary(ir::BinaryOp::eq, index, zero, arguments.span()));
}

}  // namespace

const std::vector<TileFunction>& thread_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"get_thread_binding", "dim=", "the index of a thread in its block; what follows runs for each thread",
       get_thread_binding},
      {"get_thread_bindings", "", "the indices of a thread along each thread extent", get_thread_bindings},
      {"get_thread_extent", "dim=", "how many threads a block has along an axis", get_thread_extent},
      {"get_thread_extents", "", "the thread extents of the kernel", get_thread_extents},
      {"get_block_binding", "dim=", "the index of a block in its grid", get_block_binding},
      {"get_block_bindings", "", "the indices of a block along each grid extent", get_block_bindings},
      {"thread_binding", "start, stop=, thread=", "the index of a thread by the name of its axis", thread_binding},
      {"sync_threads", "barrier_id=, arrive_count=",
       "a barrier: all threads of the block wait for each other; where one is missing between threads that exchange "
       "elements of shared memory, the compiler puts it in",
       sync_threads},
      {"tvm_storage_sync", "scope", "the old name of `T.sync_threads`", barrier},
      {"cluster_sync", "", "a barrier of all threads of all blocks of the cluster", sync_cluster},
      {"cluster_arrive", "",
       "tells all blocks of the cluster that the threads have come here; `T.cluster_wait` follows",
       arrive_cluster<ir::AsyncOp::arrive_cluster>},
      {"cluster_arrive_relaxed", "", "`T.cluster_arrive`, after which others need not see what was written before",
       arrive_cluster<ir::AsyncOp::arrive_cluster_relaxed>},
      {"cluster_wait", "", "waits until all threads of the cluster have come to `T.cluster_arrive`", wait_cluster},
      {"block_rank_in_cluster", "", "the number of the block in its cluster; 0 where blocks run alone", block_rank},
      {"sync_grid", "", "a barrier of all threads of all blocks; what is used on both sides must be in global memory",
       sync_grid},
      {"get_lane_idx", "warp_size=", "the index of a thread in its warp", lane_index},
      {"get_warp_idx", "warp_size=", "the index of a thread's warp in its block", warp_index},
      {"get_warp_idx_sync", "warp_size=", "the index of a thread's warp in its block", warp_index},
      {"get_warp_group_idx", "warp_size=, warps_per_group=", "the index of a thread's warpgroup", warp_group_index},
      {"shuffle_elect", "thread_extent", "true for one thread of each `thread_extent`; 0: of the block", shuffle_elect},
      {"sync_warp", "mask=", "a barrier: the threads of the warp wait for each other", sync_warp},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
