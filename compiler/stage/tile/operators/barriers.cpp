// Hardware barriers (mbarrier): arrays of them, and what threads do at one.
#include <fmt/format.h>

#include "compiler/ir/cluster.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// T.alloc_barrier(128), T.alloc_barrier([128, 256])
Result<Value> alloc_barrier(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::BufferData data;
  data.name = "barrier";
  data.type = ir::kUInt64;
  data.scope = ir::Scope::barrier;
  data.span = arguments.span();
  data.arrivals = TRY(to_constant_shape(arguments[0], "an arrive count", arguments.span(0)));
  data.shape = {ir::int_imm(static_cast<int64_t>(data.arrivals.size()), ir::kInt32, arguments.span())};
  return Value(std::make_shared<BufferObject>(arguments.context(), builder.allocate(std::move(data))));
}

Status emit_barrier(const TileArguments& arguments, ir::BarrierOp op, size_t operand) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Barrier node{op, TRY(barrier_operand(arguments, 0)), nullptr};
  if (operand > 0)
    node.operand = TRY(to_index(arguments[operand], "the operand of a barrier", arguments.span(operand)));
  return builder.emit(std::move(node), arguments.span());
}
template <ir::BarrierOp op, size_t operand>
Result<Value> barrier(TileArguments& arguments) {
  TRY(emit_barrier(arguments, op, operand));
  return Value();
}

// T.mbarrier_arrive(bar, cta_id=None)
Result<Value> arrive(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::Barrier node{ir::BarrierOp::arrive, TRY(barrier_operand(arguments, 0)), nullptr};
  if (arguments.has(1) && ir::cluster_size(builder.kernel()) > 1)
    node.peer = TRY(to_index(arguments[1], "a block of the cluster", arguments.span(1)));
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

}  // namespace

Result<ir::Region> barrier_operand(const TileArguments& arguments, size_t i) {
  TileOperand operand = TRY(tile_operand(arguments, i));
  const ir::BufferData& buffer = *operand.region.buffer;
  if (buffer.scope != ir::Scope::barrier) {
    Error error =
        make_error(DiagnosticKind::wrong_scope, arguments.span(i),
                   fmt::format("`{}` works on a barrier, and `{}` is none", arguments.function(), buffer.name),
                   "allocate it by `T.alloc_barrier(arrive_count)`");
    error->notes.push_back(declaration_note(buffer));
    return error;
  }
  // A bare array is its first barrier.
  operand.region.extent = {1};
  return std::move(operand.region);
}

const std::vector<TileFunction>& barrier_functions() {
  using ir::BarrierOp;
  static const std::vector<TileFunction> kFunctions = {
      {"alloc_barrier", "arrive_count", "an array of hardware barriers, each completed by that many arrivals",
       alloc_barrier},
      {"alloc_cluster_barrier", "arrive_count", "`T.alloc_barrier`, at which other blocks of the cluster may arrive",
       alloc_barrier},
      {"mbarrier_wait_parity", "mbarrier, parity", "waits until the phase of that parity has completed",
       barrier<BarrierOp::wait, 1>},
      {"barrier_wait", "barrier, parity", "the same as `T.mbarrier_wait_parity`", barrier<BarrierOp::wait, 1>},
      {"mbarrier_arrive", "mbarrier, cta_id=", "arrives at a barrier, or at that of another block of the cluster",
       arrive},
      {"barrier_arrive", "barrier, cta_id=", "the same as `T.mbarrier_arrive`", arrive},
      {"mbarrier_expect_tx", "mbarrier, tx", "that many more bytes belong to the barrier's phase",
       barrier<BarrierOp::expect, 1>},
      {"mbarrier_arrive_expect_tx", "mbarrier, tx", "`T.mbarrier_expect_tx` and `T.mbarrier_arrive`",
       barrier<BarrierOp::arrive_expect, 1>},
      {"cp_async_barrier_noinc", "barrier", "arrives when the thread's asynchronous copies so far are done",
       barrier<BarrierOp::arrive_copied, 0>},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
