// Threads of a block (SIMT): their indices, and barriers between them.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/objects.h"
#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kAxes = 3;

Result<ProgramBuilder*> builder_of(const TileArguments& arguments) {
  return require_kernel(arguments.context(), fmt::format("`{}`", arguments.function()), arguments.span());
}

Result<size_t> axis_of(const TileArguments& arguments) {
  int64_t axis = TRY(arguments.integer_or(0, 0));
  if (axis >= 0 && axis < kAxes) return static_cast<size_t>(axis);
  return make_error(DiagnosticKind::value_error, arguments.span(0),
                    fmt::format("a block has thread axes 0 to {}, not {}", kAxes - 1, axis));
}

Value thread_index(const TileArguments& arguments, ProgramBuilder& builder, size_t axis) {
  return make_expr(arguments.context(), builder.thread_index(axis, arguments.span()));
}

int64_t thread_extent(const ProgramBuilder& builder, size_t axis) {
  auto& threads = builder.kernel().threads;
  return axis < threads.size() ? threads[axis] : 1;
}

Result<Value> get_thread_binding(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  return thread_index(arguments, builder, TRY(axis_of(arguments)));
}

Result<Value> get_thread_bindings(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  std::vector<Value> indices;
  for (size_t axis = 0; axis < builder.kernel().threads.size(); ++axis)
    indices.push_back(thread_index(arguments, builder, axis));
  return make_list(std::move(indices));
}

Result<Value> get_thread_extent(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  return Value(thread_extent(builder, TRY(axis_of(arguments))));
}

Result<Value> get_thread_extents(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
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
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  return block_index(arguments, builder, TRY(axis_of(arguments)));
}

Result<Value> get_block_bindings(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  std::vector<Value> indices;
  for (size_t axis = 0; axis < builder.kernel().block_vars.size(); ++axis)
    indices.push_back(block_index(arguments, builder, axis));
  return make_list(std::move(indices));
}

// T.thread_binding(n, thread="threadIdx.x"), T.thread_binding(0, n, thread="threadIdx.x"): the extents must be those of
// the launch.
Result<Value> thread_binding(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(builder_of(arguments));
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
  ProgramBuilder& builder = *TRY(builder_of(arguments));
  TRY(builder.emit(ir::Sync{}, arguments.span()));
  return Value();
}

Result<Value> sync_threads(TileArguments& arguments) {
  if (arguments.has(0) || arguments.has(1))
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(),
                      "barriers for some threads of a block are not supported",
                      "call `T.sync_threads()` where all threads come");
  return barrier(arguments);
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
      {"sync_threads", "barrier_id=, arrive_count=", "a barrier: all threads of the block wait for each other",
       sync_threads},
      {"tvm_storage_sync", "scope", "the old name of `T.sync_threads`", barrier},
      {"sync_warp", "mask=", "a barrier of a warp; here one of the block", barrier},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
