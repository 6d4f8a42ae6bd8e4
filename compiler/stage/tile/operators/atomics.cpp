// Atomic updates: of one element by each thread, or of a tile, each element once.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

struct NamedOrder {
  std::string_view name;
  ir::MemoryOrder order;
};
constexpr NamedOrder kOrders[] = {{"relaxed", ir::MemoryOrder::relaxed}, {"consume", ir::MemoryOrder::acquire},
                                  {"acquire", ir::MemoryOrder::acquire}, {"release", ir::MemoryOrder::release},
                                  {"acq_rel", ir::MemoryOrder::acq_rel}, {"seq_cst", ir::MemoryOrder::seq_cst}};

Result<ir::MemoryOrder> memory_order(const TileArguments& arguments, size_t i, ir::MemoryOrder fallback) {
  if (!arguments.has(i)) return fallback;
  const std::string name = TRY(arguments.text(i));
  for (const NamedOrder& row : kOrders)
    if (row.name == name) return row.order;
  return make_error(DiagnosticKind::value_error, arguments.span(i), fmt::format("there is no memory order `{}`", name),
                    "it is relaxed, consume, acquire, release, acq_rel or seq_cst");
}

Status check_type(const TileArguments& arguments, const ir::Region& target, ir::AtomicOp op) {
  const ir::DType type = target.buffer->type;
  if (op != ir::AtomicOp::bit_or || type.is_int() || type.is_bool()) return {};
  Error error = make_error(DiagnosticKind::dtype_mismatch, arguments.span(),
                           fmt::format("`{}` combines bits, but `{}` holds {}", arguments.function(),
                                       target.buffer->name, ir::to_string(type)));
  error->notes.push_back(declaration_note(*target.buffer));
  return error;
}

// Outside parallel loops every thread of the block comes here: the kernel is one of threads from here on.
void run_by_each_thread(ProgramBuilder& builder, Span span) {
  if (!builder.in_parallel_loop()) builder.thread_index(0, span);
}

// One element; gives its old value if `wants_previous`.
Result<Value> emit_element(const TileArguments& arguments, ir::Atomic node, bool wants_previous) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(check_type(arguments, node.element, node.op));
  run_by_each_thread(builder, arguments.span());
  if (wants_previous) node.previous = builder.make_var("previous", node.element.buffer->type);
  const ir::Var previous = node.previous;
  TRY(builder.emit(std::move(node), arguments.span()));
  return previous ? make_expr(arguments.context(), ir::var_ref(previous, arguments.span())) : Value();
}

// A parallel loop over the tile; `value_at` gives what is combined with the element at the loop's variables.
Status emit_tile(const TileArguments& arguments, const ir::Region& target, const ir::Atomic& pattern,
                 const std::function<ir::Expr(const std::vector<ir::Expr>&)>& value_at) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  TRY(check_type(arguments, target, pattern.op));
  std::vector<ir::Expr> extents;
  for (const int64_t extent : without_ones(target.extent)) extents.push_back(ir::int_imm(extent, ir::kInt32, span));
  return for_each_element(arguments, extents, [&](const std::vector<ir::Expr>& steps) {
    ir::Atomic node = pattern;
    node.element = element_at(target.buffer, stepped(target, steps, span), span);
    node.value = value_at(steps);
    return builder.emit(std::move(node), span);
  });
}

// T.atomic_add(dst, value, memory_order=, return_prev=, ...)
Result<Value> update(TileArguments& arguments, ir::AtomicOp op) {
  const bool wants_previous = TRY(arguments.flag_or(3, false));
  TileOperand target = TRY(tile_operand(arguments, 0));
  ir::Atomic node{op, {}, nullptr, TRY(memory_order(arguments, 2, ir::MemoryOrder::relaxed)), nullptr};
  const ir::DType type = target.region.buffer->type;
  const bool of_tile = names_memory(arguments[1]);
  if (target.is_point && !of_tile) {
    node.element = TRY(tile_region(arguments, 0));
    node.value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
    return emit_element(arguments, std::move(node), wants_previous);
  }
  if (wants_previous)
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(),
                      fmt::format("`{}` of a tile has no previous value to return", arguments.function()),
                      "update one element at a time in a `T.Parallel` loop");
  if (!of_tile) {
    const ir::Expr value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
    TRY(emit_tile(arguments, target.region, node, [&](const auto&) { return value; }));
    return Value();
  }
  TileOperand source = TRY(tile_operand(arguments, 1));
  TRY(match_extents(arguments, source, target));
  TRY(emit_tile(arguments, target.region, node, [&](const std::vector<ir::Expr>& steps) {
    const ir::Expr value =
        ir::load(source.region.buffer, stepped(source.region, steps, arguments.span()), arguments.span());
    return fold_cast(value, type, arguments.span());
  }));
  return Value();
}
template <ir::AtomicOp op>
Result<Value> update_with(TileArguments& arguments) {
  return update(arguments, op);
}

// T.atomic_addx2(dst, value, return_prev=): neighbours along the last axis, from the element named. Each is updated as
// a whole, not all together; their previous values are a tuple.
template <int64_t count>
Result<Value> add_neighbours(TileArguments& arguments) {
  const bool wants_previous = TRY(arguments.flag_or(2, false));
  const ir::Region target = TRY(tile_region(arguments, 0)), source = TRY(tile_region(arguments, 1));
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  const auto sum_at = [&](const ir::Expr& step) {
    const ir::Expr value = ir::load(source.buffer, neighbour(source, step, span), span);
    return ir::Atomic{ir::AtomicOp::add, element_at(target.buffer, neighbour(target, step, span), span),
                      fold_cast(value, target.buffer->type, span), ir::MemoryOrder::relaxed, nullptr};
  };
  if (!wants_previous) {
    run_by_each_thread(builder, span);
    const ir::Var lane = builder.make_var("lane", ir::kInt32);
    ir::For loop{ir::LoopKind::vectorized, {lane}, {ir::int_imm(count, ir::kInt32, span)}, 0, nullptr};
    loop.body = TRY(builder.nested(
        BlockKind::parallel_loop, loop.vars,
        [&]() -> Status {
          TRY(emit_element(arguments, sum_at(ir::var_ref(lane, span)), false));
          return {};
        },
        span));
    TRY(builder.emit(std::move(loop), span));
    return Value();
  }
  std::vector<Value> previous;
  for (int64_t step = 0; step < count; ++step)
    previous.push_back(TRY(emit_element(arguments, sum_at(ir::int_imm(step, ir::kInt32, span)), true)));
  return make_tuple(std::move(previous));
}

Result<Value> load(TileArguments& arguments) {
  ir::Atomic node{ir::AtomicOp::load, TRY(tile_region(arguments, 0))};
  node.order = TRY(memory_order(arguments, 1, ir::MemoryOrder::seq_cst));
  return emit_element(arguments, std::move(node), true);
}

Result<Value> store(TileArguments& arguments) {
  ir::Atomic node{ir::AtomicOp::store, TRY(tile_region(arguments, 0))};
  node.order = TRY(memory_order(arguments, 2, ir::MemoryOrder::seq_cst));
  const ir::DType type = node.element.buffer->type;
  node.value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
  return emit_element(arguments, std::move(node), false);
}

}  // namespace

const std::vector<TileFunction>& atomic_functions() {
  static constexpr std::string_view kUpdate = "dst, value, memory_order=, return_prev=, use_tma?=False, annotations?";
  static const std::vector<TileFunction> kFunctions = {
      {"atomic_add", kUpdate, "dst += value, whoever else does so: an element by each thread, or a tile once",
       update_with<ir::AtomicOp::add>},
      {"atomic_max", kUpdate, "dst = max(dst, value), likewise", update_with<ir::AtomicOp::max>},
      {"atomic_min", kUpdate, "dst = min(dst, value), likewise", update_with<ir::AtomicOp::min>},
      {"atomic_or", kUpdate, "dst |= value, likewise", update_with<ir::AtomicOp::bit_or>},
      {"atomic_addx2", "dst, value, return_prev=, annotations?", "atomic_add of two neighbours", add_neighbours<2>},
      {"atomic_addx4", "dst, value, return_prev=, annotations?", "atomic_add of four neighbours", add_neighbours<4>},
      {"atomic_load", "src, memory_order=", "the element as a whole, as other threads left it", load},
      {"atomic_store", "dst, src, memory_order=", "sets an element as a whole", store},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
