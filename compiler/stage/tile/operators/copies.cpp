// copy, fill, clear: one IR statement each, or a loop over the elements where extents are known only at run time.
#include <algorithm>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// One element to one element: a plain store.
Status copy_element(ProgramBuilder& builder, const ir::Region& from, const ir::Region& to, Span span) {
  ir::Expr value = fold_cast(ir::load(from.buffer, from.start, from.span), to.buffer->type, span);
  return builder.emit(ir::Store{to.buffer, to.start, std::move(value)}, span);
}

// Whether the element lies in a tile of the block; null if there is nothing to ask: outside global tensors reads are 0
// and stores dropped anyway.
ir::Expr inside(const ir::Region& region, const std::vector<ir::Expr>& indices, Span span) {
  if (region.buffer->scope == ir::Scope::global) return nullptr;
  ir::Expr all;
  auto require = [&](ir::BinaryOp op, const ir::Expr& index, const ir::Expr& bound) {
    ir::Expr one = fold_binary(op, index, fold_cast(bound, index->type, span), span);
    all = all ? fold_binary(ir::BinaryOp::logical_and, all, std::move(one), span) : std::move(one);
  };
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (region.extent[axis] == 1) continue;
    require(ir::BinaryOp::ge, indices[axis], ir::int_imm(0, ir::kInt32, span));
    require(ir::BinaryOp::lt, indices[axis], region.buffer->shape[axis]);
  }
  return all;
}

Status store_inside(ProgramBuilder& builder, const ir::Region& region, const std::vector<ir::Expr>& indices,
                    ir::Expr value, Span span) {
  const auto store = [&]() -> Status {
    return builder.emit(ir::Store{region.buffer, indices, std::move(value)}, span);
  };
  ir::If node{inside(region, indices, span), nullptr, nullptr};
  if (!node.condition) return store();
  node.then = TRY(builder.nested(BlockKind::branch, {}, store, span));
  return builder.emit(std::move(node), span);
}

Status copy_in_loop(const TileArguments& arguments, const CopyBox& box) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  return for_each_element(arguments, box.extents, [&](const std::vector<ir::Expr>& steps) {
    const std::vector<ir::Expr> from = stepped(box.source, steps, span);
    const ir::DType type = box.source.buffer->type;
    ir::Expr value = ir::load(box.source.buffer, from, box.source.span);
    const ir::Expr zero = type.is_float() ? ir::float_imm(0, type, span) : ir::int_imm(0, type, span);
    if (ir::Expr is_there = inside(box.source, from, span))
      value = fold_select(std::move(is_there), std::move(value), zero, span);
    value = fold_cast(std::move(value), box.destination.buffer->type, span);
    return store_inside(builder, box.destination, stepped(box.destination, steps, span), std::move(value), span);
  });
}

bool are_constant(const std::vector<ir::Expr>& extents) {
  return std::all_of(extents.begin(), extents.end(),
                     [](const ir::Expr& extent) { return ir::constant_int(extent).has_value(); });
}

// T.copy(src, dst, *, coalesced_width=, disable_tma=, ...)
Result<Value> copy(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TileOperand source = TRY(open_operand(arguments, 0)), destination = TRY(open_operand(arguments, 1));
  if (source.is_point && destination.is_point) {
    TRY(copy_element(builder, source.region, destination.region, arguments.span()));
    return Value();
  }
  CopyBox box = TRY(copy_box(arguments, std::move(source), std::move(destination)));
  if (!are_constant(box.extents)) {
    TRY(copy_in_loop(arguments, box));
    return Value();
  }
  ir::CopyOptions options;
  options.coalesced_width = static_cast<int>(TRY(arguments.integer_or(2, 0)));
  options.disable_tma = TRY(arguments.flag_or(3, false));
  TRY(builder.emit(ir::Copy{std::move(box.source), std::move(box.destination), options}, arguments.span()));
  return Value();
}

Status emit_fill(const TileArguments& arguments, const Value& value) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  TileOperand operand = TRY(open_operand(arguments, 0));
  ir::Region& region = operand.region;
  ir::DType type = region.buffer->type;
  ir::Expr element = fold_cast(TRY(to_expr(value, span, type)), type, span);
  if (operand.is_point) return builder.emit(ir::Store{region.buffer, region.start, std::move(element)}, span);
  if (operand.extents.empty()) return builder.emit(ir::Fill{std::move(region), std::move(element)}, span);
  return for_each_element(arguments, long_extents(operand), [&](const std::vector<ir::Expr>& steps) {
    return store_inside(builder, region, stepped(region, steps, span), element, span);
  });
}

Result<Value> fill(TileArguments& arguments) {
  TRY(emit_fill(arguments, arguments[1]));
  return Value();
}

Result<Value> clear(TileArguments& arguments) {
  TRY(emit_fill(arguments, Value(int64_t{0})));
  return Value();
}

}  // namespace

const std::vector<TileFunction>& copy_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"copy",
       "src, dst, coalesced_width=, disable_tma=, eviction_policy?, prefer_instruction?, annotations?, loop_layout?",
       "copies a tile, converting to the destination's dtype; outside a global tensor reads are 0, writes dropped; of "
       "unequal extents those of the side closer to the threads count; from a start point to a start point it is one "
       "element; a start that is a negative number counts from the end",
       copy},
      {"fill", "buffer, value, annotations?", "sets every element of a buffer or slice", fill},
      {"clear", "buffer, annotations?", "sets every element of a buffer or slice to 0", clear},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
