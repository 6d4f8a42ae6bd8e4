#include "compiler/targets/cuda/wgmma_operand.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::Expr;
using layout::SwizzleSpan;

namespace {

constexpr int64_t kStepBytes = 32;  // of a row along k that an instruction takes; for all types

// How descriptors name the swizzle.
int64_t swizzle_number(SwizzleSpan span) {
  return span == SwizzleSpan::bytes_128 ? 1 : span == SwizzleSpan::bytes_64 ? 2 : 3;
}

}  // namespace

WarpgroupPosition find_warpgroup(Lowering& lowering, const GemmPlan& plan, Span span, Lowering::Stmts& out) {
  const int64_t groups = plan.warps_m * plan.warps_n;
  const Expr group = lowering.let("group", quotient(lowering.thread_number(), 128), groups, span, out);
  const Expr m = lowering.let("group_m", remainder(group, plan.warps_m), plan.warps_m, span, out);
  return {m, lowering.let("group_n", quotient(group, plan.warps_m), plan.warps_n, span, out)};
}

SharedOperand shared_operand(const Lowering& lowering, const ir::Region& region, bool k_last, int64_t outer) {
  const layout::SharedLayout& memory = lowering.inference.tiles.at(region.buffer.get());
  const layout::Shape& shape = memory.shape();
  const auto span = static_cast<int64_t>(memory.span());
  return {region,
          k_last,
          outer,
          span,
          region.buffer->type.bytes(),
          (shape[shape.size() - 2] + 7) / 8 * 8 * span,
          ir::make_var(region.buffer->name + "_place", ir::kUInt64)};
}

void describe(const Lowering& lowering, const SharedOperand& operand, const Expr& first, Span span,
              Lowering::Stmts& out) {
  std::vector<Expr> at = operand.region.start;
  const size_t rank = at.size();
  for (Expr& index : at) index = ir::cast(index, ir::kInt32);
  if (operand.k_last) {
    at[rank - 2] = plus(first, at[rank - 2]);
    at[rank - 1] = ir::int_imm(0);
  } else {
    at[rank - 1] = plus(first, at[rank - 1]);
  }
  const SwizzleSpan swizzle = lowering.inference.tiles.at(operand.region.buffer.get()).span();
  // Along k: patterns below each other, or panels (which the descriptor does not walk).
  const int64_t leading = operand.k_last ? 16 : operand.panel_bytes, stride = 8 * operand.span;
  ir::ExternCall place{"matrix_place",
                       {lowering.address(operand.region.buffer, at, span), ir::int_imm(leading), ir::int_imm(stride),
                        ir::int_imm(swizzle_number(swizzle))},
                       operand.place};
  out.push_back(ir::make_stmt(std::move(place), span));
}

Expr place_of(const SharedOperand& operand, const Expr& tile, const Expr& step, Span span) {
  Expr bytes;
  if (operand.k_last) {
    const Expr& start_column = operand.region.start.back();
    const auto known = ir::constant_int(start_column);
    const Expr column = known ? ir::int_imm(*known) : ir::cast(start_column, ir::kInt32);
    const Expr along = plus(step, quotient(times(column, operand.bytes), kStepBytes));
    const int64_t steps = operand.span / kStepBytes;
    bytes = plus(times(quotient(along, steps), operand.panel_bytes), times(remainder(along, steps), kStepBytes));
    bytes = plus(times(tile, operand.outer * operand.span), bytes);
  } else {
    const int64_t width = operand.span / operand.bytes;
    bytes = plus(times(tile, operand.outer / width * operand.panel_bytes),
                 times(step, kStepBytes / operand.bytes * operand.span));
  }
  const Expr units = quotient(bytes, 16);
  const Expr start = ir::var_ref(operand.place);
  if (ir::constant_int(units) == 0) return start;
  return ir::binary(ir::BinaryOp::add, start, ir::cast(units, ir::kUInt64), span);
}

}  // namespace tilepilot::targets::cuda
