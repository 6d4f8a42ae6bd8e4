// Reducers: accumulators of a tile that every iteration of a parallel loop may add to. They are fragments whose updates
// are atomic, so that each contribution counts once.
#include <fmt/format.h>

#include <limits>

#include "compiler/ir/bounds.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Result<ir::AtomicOp> reducer_op(const TileArguments& arguments, size_t i) {
  const std::string name = arguments.has(i) ? TRY(arguments.text(i)) : "sum";
  if (name == "sum") return ir::AtomicOp::add;
  if (name == "max") return ir::AtomicOp::max;
  if (name == "min") return ir::AtomicOp::min;
  if (name == "bitor") return ir::AtomicOp::bit_or;
  return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(i),
                    fmt::format("reducers of `{}` are not supported", name), "use sum, max, min or bitor");
}

// What changes no value that it is combined with.
ir::Expr identity(ir::AtomicOp op, ir::DType type, Span span) {
  const bool adds = op == ir::AtomicOp::add || op == ir::AtomicOp::bit_or;
  if (type.is_float()) {
    const double infinity = std::numeric_limits<double>::infinity();
    return ir::float_imm(adds ? 0 : op == ir::AtomicOp::max ? -infinity : infinity, type, span);
  }
  const ir::Bounds all = ir::type_bounds(type);
  return ir::int_imm(adds ? 0 : op == ir::AtomicOp::max ? all.lo : all.hi, type, span);
}

// T.alloc_reducer(shape, dtype, op="sum", replication=None)
Result<Value> alloc_reducer(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::BufferData data;
  data.name = "reducer";
  data.scope = ir::Scope::fragment;
  data.reducer = true;
  data.span = arguments.span();
  data.type = TRY(resolve_dtype(arguments.context(), arguments[1], arguments.span(1)));
  for (const int64_t extent : TRY(to_constant_shape(arguments[0], "an extent of `T.alloc_reducer`", arguments.span(0))))
    data.shape.push_back(ir::int_imm(extent, ir::kInt32, arguments.span()));
  const auto op = TRY(reducer_op(arguments, 2));
  auto buffer = builder.allocate(std::move(data));
  builder.reducers()[buffer.get()] = op;
  return Value(std::make_shared<BufferObject>(arguments.context(), std::move(buffer)));
}

Error no_reducer(const TileArguments& arguments, const std::string& what) {
  return make_error(DiagnosticKind::type_error, arguments.span(0),
                    fmt::format("`{}` takes a reducer, and {} is none", arguments.function(), what),
                    "make one by `T.alloc_reducer(shape, dtype, op=...)`");
}

// The operation of the reducer that is argument 0.
Result<ir::AtomicOp> operation(const TileArguments& arguments) {
  const ir::Region region = TRY(tile_region(arguments, 0));
  const auto& reducers = TRY(require_kernel(arguments))->reducers();
  const auto found = reducers.find(region.buffer.get());
  if (found == reducers.end()) return no_reducer(arguments, fmt::format("`{}`", region.buffer->name));
  return found->second;
}

// T.reducer_init(r, init=None): what is there before the first contribution.
Result<Value> init(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::AtomicOp op = TRY(operation(arguments));
  ir::Region whole = TRY(tile_region(arguments, 0));
  if (arguments.has(1) && arguments[1].get_if<BufferObject>()) {
    TRY(builder.emit(ir::Copy{TRY(tile_region(arguments, 1)), std::move(whole)}, arguments.span()));
    return Value();
  }
  const ir::DType type = whole.buffer->type;
  ir::Expr value = identity(op, type, arguments.span());
  if (arguments.has(1)) value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
  TRY(builder.emit(ir::Fill{std::move(whole), std::move(value)}, arguments.span()));
  return Value();
}

// T.finalize_reducer(r, dst=None, batch=1): without dst the reducer itself is the result.
Result<Value> finalize(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(operation(arguments));
  if (!arguments.has(1)) return Value();
  TileOperand source = TRY(tile_operand(arguments, 0)), destination = TRY(tile_operand(arguments, 1));
  TRY(match_extents(arguments, source, destination));
  TRY(builder.emit(ir::Copy{std::move(source.region), std::move(destination.region)}, arguments.span()));
  return Value();
}

// T.reducer_update(r[i], value)
Result<Value> update(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::Region element = TRY(tile_region(arguments, 0));
  const ir::AtomicOp op = TRY(operation(arguments));
  const ir::DType type = element.buffer->type;
  const ir::Expr value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
  TRY(builder.emit(ir::Atomic{op, element, value, ir::MemoryOrder::relaxed, nullptr}, arguments.span()));
  return Value();
}

}  // namespace

std::optional<ir::Expr> contribution(ir::AtomicOp op, const ir::Expr& value, const ir::Buffer& buffer,
                                     const std::vector<ir::Expr>& indices) {
  static constexpr ir::BinaryOp kOperations[] = {ir::BinaryOp::add, ir::BinaryOp::min, ir::BinaryOp::max,
                                                 ir::BinaryOp::bit_or};
  const auto* node = ir::as<ir::Binary>(value);
  if (!node || node->op != kOperations[static_cast<size_t>(op) - static_cast<size_t>(ir::AtomicOp::add)])
    return std::nullopt;
  const ir::Expr here = ir::load(buffer, indices);
  if (ir::structurally_equal(node->left, here)) return node->right;
  if (ir::structurally_equal(node->right, here)) return node->left;
  return std::nullopt;
}

const std::vector<TileFunction>& reducer_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"alloc_reducer", "shape, dtype, op=, replication=",
       "a tile that all iterations of a parallel loop may add to: sum, max, min or bitor", alloc_reducer},
      {"reducer_init", "reducer, init=", "what a reducer holds before the first contribution", init},
      {"reducer_update", "element, value", "one contribution to an element of a reducer", update},
      {"finalize_reducer", "reducer, dst=, batch=", "ends contributions; copies the results to `dst`", finalize},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
