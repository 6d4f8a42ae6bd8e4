// Reductions over the threads of a block, as the old dialect writes them:
//   with T.attr(T.comm_reducer(lambda x, y: x + y, [0.0]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
//       T.evaluate(T.tvm_thread_allreduce(T.uint32(1), value, True, result[0], tx, dtype="handle"))
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr ir::BinaryOp kCombiners[] = {ir::BinaryOp::add,    ir::BinaryOp::mul,     ir::BinaryOp::min,
                                       ir::BinaryOp::max,    ir::BinaryOp::bit_and, ir::BinaryOp::bit_or,
                                       ir::BinaryOp::bit_xor};

struct CommReducer final : TypedObject<CommReducer> {
  static constexpr Type kType{"combiner"};
  CommReducer(Value combine_, Value identity_) : combine(std::move(combine_)), identity(std::move(identity_)) {}
  const Value combine, identity;
};

// `with T.attr(...)`: for a combiner, what all-reduces in it combine with.
struct AttributeFrame final : TypedObject<AttributeFrame> {
  static constexpr Type kType{"attribute scope"};
  AttributeFrame(TileContext& context_, Value node_) : context(context_), node(std::move(node_)) {}
  Result<Value> enter(Interpreter&, Span) override {
    context.combiners.push_back(node);
    return Value();
  }
  Status exit(Interpreter&, Span) override {
    context.combiners.pop_back();
    return {};
  }
  TileContext& context;
  const Value node;
};

Result<Value> comm_reducer(TileArguments& arguments) {
  Value identity = arguments[1];
  if (auto* items = sequence_items(identity)) {
    if (items->size() != 1)
      return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(1),
                        fmt::format("a combiner of {} values at once is not supported", items->size()),
                        "combine one value at a time");
    identity = items->front();
  }
  return Value(std::make_shared<CommReducer>(arguments[0], std::move(identity)));
}

Result<Value> attribute(TileArguments& arguments) {
  return Value(std::make_shared<AttributeFrame>(arguments.context(), arguments[0]));
}

Result<Value> evaluate(TileArguments&) { return Value(); }

// What the function does to two values of the type: one of the operations that threads can do in any order.
Result<ir::BinaryOp> combiner_of(const TileArguments& arguments, const CommReducer& reducer, ir::DType type) {
  TileContext& context = arguments.context();
  const ir::Var x = ir::make_var("x", type), y = ir::make_var("y", type);
  CallArgs call;
  call.span = arguments.span();
  call.positional = {make_expr(context, ir::var_ref(x)), make_expr(context, ir::var_ref(y))};
  const ir::Expr combined =
      TRY(to_expr(TRY(context.interpreter.call(reducer.combine, std::move(call))), arguments.span(), type));
  const auto is = [](const ir::Expr& expr, const ir::Var& var) {
    const auto* ref = std::get_if<ir::VarRef>(&expr->node);
    return ref && ref->var == var;
  };
  const auto* node = std::get_if<ir::Binary>(&combined->node);
  const bool of_both = node && ((is(node->left, x) && is(node->right, y)) || (is(node->left, y) && is(node->right, x)));
  if (of_both && std::find(std::begin(kCombiners), std::end(kCombiners), node->op) != std::end(kCombiners))
    return node->op;
  return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(),
                    "threads cannot combine their values with this function",
                    "the combiner of `T.comm_reducer` is x + y, x * y, T.min, T.max, x & y, x | y or x ^ y");
}

Result<int> thread_axis(const TileArguments& arguments, const ProgramBuilder& builder, const Value& value) {
  ir::Expr expr = TRY(to_expr(value, arguments.span()));
  const auto& vars = builder.kernel().thread_vars;
  while (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
    const auto found = std::find(vars.begin(), vars.end(), ref->var);
    if (found != vars.end()) return static_cast<int>(found - vars.begin());
    expr = builder.definition(ref->var);
    if (!expr) break;
  }
  return make_error(DiagnosticKind::value_error, arguments.span(),
                    "`T.tvm_thread_allreduce` reduces over thread indices, and this is none",
                    "pass what `T.get_thread_binding` returned");
}

// T.tvm_thread_allreduce(T.uint32(1), value, condition, result[0], tx, ..., dtype="handle")
Result<Value> thread_allreduce(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(context, "`T.tvm_thread_allreduce`", arguments.span()));
  const CommReducer* reducer = nullptr;
  for (const Value& node : context.combiners)
    if (auto* found = node.get_if<CommReducer>()) reducer = found;
  if (!reducer)
    return make_error(
        DiagnosticKind::staged_value_misused, arguments.span(),
        "`T.tvm_thread_allreduce` stands outside `with T.attr(T.comm_reducer(...), \"reduce_scope\", ...)`",
        "the combiner says how values are put together");
  if (constant_integer(arguments[0]) != 1)
    return make_error(DiagnosticKind::unsupported_tile_feature, arguments.span(0),
                      "`T.tvm_thread_allreduce` of several values at once is not supported",
                      "call it once for each value");
  ir::AllReduce node;
  node.result = TRY(tile_region(arguments, 3));
  const ir::DType type = node.result.buffer->type;
  node.op = TRY(combiner_of(arguments, *reducer, type));
  node.value = fold_cast(TRY(to_expr(arguments[1], arguments.span(1), type)), type, arguments.span());
  node.condition = TRY(to_condition(arguments[2], arguments.span(2)));
  node.identity = fold_cast(TRY(to_expr(reducer->identity, arguments.span(), type)), type, arguments.span());
  for (const Value& thread : arguments.rest()) node.axes.push_back(TRY(thread_axis(arguments, builder, thread)));
  std::sort(node.axes.begin(), node.axes.end());
  node.axes.erase(std::unique(node.axes.begin(), node.axes.end()), node.axes.end());
  if (node.axes.empty())
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      "`T.tvm_thread_allreduce` names no thread index to reduce over",
                      "pass what `T.get_thread_binding` returned after the result");
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

}  // namespace

const std::vector<TileFunction>& all_reduce_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"comm_reducer", "fcombine, identity_element",
       "how threads combine their values: a function of two, and what changes nothing", comm_reducer},
      {"attr", "node, attr_key, value", "`with T.attr(T.comm_reducer(...), \"reduce_scope\", ...)`", attribute},
      {"tvm_thread_allreduce", "count, value, condition, result, *threads, dtype=",
       "combines `value` over threads; each finds the result in its `result`", thread_allreduce},
      {"evaluate", "value", "nothing: its argument has been traced", evaluate},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
