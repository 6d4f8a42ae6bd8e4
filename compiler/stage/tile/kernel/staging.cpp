#include "compiler/stage/tile/kernel/staging.h"

#include <fmt/format.h>

#include "compiler/ir/visit.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/poison.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/tile/buffers/declarations.h"
#include "compiler/stage/tile/kernel/debug.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/kernel/loops.h"

namespace tilepilot::stage {
namespace {

bool contains_load(const ir::Expr& expr) {
  bool found = false;
  ir::walk(expr, [&](const ir::Expr& part) { found = found || std::holds_alternative<ir::Load>(part->node); });
  return found;
}

// Whether `expr` reads the variable that `reference` is.
// Whether `expr` is made of what `name` had. A second name for another variable is told from it by its node: see
// bind_expression.
bool mentions(const ir::Expr& expr, const ir::Expr& had, Name name) {
  auto* wanted = std::get_if<ir::VarRef>(&had->node);
  if (!wanted) return false;
  const bool is_alias = wanted->var->name != name.str();
  bool found = false;
  ir::walk(expr, [&](const ir::Expr& part) {
    auto* var = std::get_if<ir::VarRef>(&part->node);
    found = found || (is_alias ? part == had : var && var->var == wanted->var);
  });
  return found;
}

}  // namespace

bool Tracer::is_staged(const Value& value) const { return is_staged_value(value); }

Status Tracer::if_statement(const Value& condition, const RunBody& then, const RunBody* otherwise, Span span) {
  TRY(require_kernel(context_, "an `if` on a run-time value", span));
  ir::If node;
  node.condition = TRY(to_condition(condition, span));
  node.then = TRY(builder_.nested(BlockKind::branch, {}, then, span));
  if (otherwise) node.otherwise = TRY(builder_.nested(BlockKind::branch, {}, *otherwise, span));
  return builder_.emit(std::move(node), span);
}

Status Tracer::while_statement(const RunExpr& condition, const RunBody& body, Span span) {
  TRY(require_kernel(context_, "a `while` on a run-time value", span));
  ir::While node;
  node.condition = TRY(to_condition(TRY(condition()), span));
  node.body = TRY(builder_.nested(BlockKind::serial_loop, {}, body, span));
  return builder_.emit(std::move(node), span);
}

Result<Value> Tracer::conditional(const Value& condition, const RunExpr& then, const RunExpr& otherwise, Span span) {
  ir::Expr test = TRY(to_condition(condition, span));
  Value left = TRY(lazily(then)), right = TRY(lazily(otherwise));
  Operands sides = TRY(matched_operands(left, right, span));
  Value result = make_expr(context_, ir::select(std::move(test), sides.left, sides.right, span));
  return nest(std::move(result), {&condition, &left, &right}, span);
}

Result<Value> Tracer::lazily(const RunExpr& operand) {
  ++builder_.lazy_operands;
  auto value = operand();
  --builder_.lazy_operands;
  return value;
}

// Only in the statements of kernels: what plain Python computes around them is needed for what follows.
bool Tracer::recovers(const Error& error) {
  constexpr size_t kMostErrors = 10;
  const auto& frames = context_.interpreter.frames();
  if (!builder_.in_kernel() || frames.size() > context_.traced_depth) return false;
  if (is_poisoned(*error)) return true;
  const bool is_mistake = is_catchable(error->kind) && !error->thrown && error->kind != DiagnosticKind::raised;
  if (!is_mistake || errors_.size() + 1 == kMostErrors) return false;
  for (const Diagnostic& known : errors_)
    if (known.span == error->span && known.message == error->message) return true;
  errors_.push_back(*error);
  for (size_t i = frames.size(); i-- > outer_frames_;) Interpreter::note_call(errors_.back(), frames[i]);
  return true;
}

Result<Value> Tracer::finish(Result<Value> result) {
  if (errors_.empty()) return result;
  if (!result.ok() && !is_poisoned(result.error())) errors_.push_back(result.error());
  for (size_t i = 1; i < errors_.size(); ++i) context_.interpreter.diagnostics().add(errors_[i]);
  return make_error(std::move(errors_.front()));
}

// Names of an earlier call at this depth are another function's.
void Tracer::function_entered() {
  size_t depth = context_.interpreter.frames().size();
  bound_.erase(bound_.lower_bound({depth, nullptr}), bound_.lower_bound({depth + 1, nullptr}));
  entry_blocks_[depth] = builder_.innermost_block();
}

// The block where a name was last bound; a parameter's is the one that the call stands in.
int Tracer::binding_block(Name name) const {
  if (auto found = bound_.find(local(name)); found != bound_.end()) return found->second;
  auto entry = entry_blocks_.find(context_.interpreter.frames().size());
  return entry == entry_blocks_.end() ? 0 : entry->second;
}

Result<Value> Tracer::logical(bool is_and, const Value& left, const Value& right, Span span) {
  ir::Expr a = TRY(to_condition(left, span)), b = TRY(to_condition(right, span));
  ir::BinaryOp op = is_and ? ir::BinaryOp::logical_and : ir::BinaryOp::logical_or;
  return nest(make_expr(context_, fold_binary(op, std::move(a), std::move(b), span)), {&left, &right}, span);
}

Result<Value> Tracer::logical_not(const Value& operand, Span span) {
  return apply_unary(context_, UnaryOp::logical_not, operand, span);
}

Status Tracer::assertion(const Value& condition, const std::string& message, Span span) {
  if (context_.declarations && context_.declarations->finding_sizes) return {};  // the second pass knows more
  if (builder_.in_kernel()) return emit_check(builder_, condition, message, span);
  context_.interpreter.diagnostics().add(
      {DiagnosticKind::ignored_request, span,
       "this assertion about run-time values stands outside the kernel and is not checked"});
  return {};
}

Result<std::optional<Value>> Tracer::assign(Name name, const Value* previous, Value value, Span span) {
  if (previous && previous->get_if<VarObject>()) {
    auto stored = TRY(assign_variable(name, previous, value, span));
    if (!stored) return stored;
  }
  if (previous) TRY(check_rebinding(name, *previous, value, span));
  if (auto* variable = value.get_if<VarObject>(); variable && variable->named)
    value = make_expr(context_, variable->load(span));  // a copy of its value, not a second name for it
  if (auto* expression = value.get_if<TileExpr>()) value = TRY(bind_expression(name, expression->expr, value, span));
  give_name(name, value);
  bound_[local(name)] = builder_.innermost_block();
  return std::optional<Value>(std::move(value));
}

// `v = x` where v was made by T.alloc_var: a store, unless x is a fresh variable that replaces it.
Result<std::optional<Value>> Tracer::assign_variable(Name, const Value* previous, const Value& value, Span span) {
  if (auto* fresh = value.get_if<VarObject>(); fresh && !fresh->named) return std::optional<Value>(value);
  if (!value.as_number() && !is_tile_value(value)) return std::optional<Value>(value);
  TRY(previous->get_if<VarObject>()->store(value, span));
  return std::optional<Value>();
}

Result<Value> Tracer::bind_expression(Name name, const ir::Expr& expr, Value value, Span span) {
  if (auto constant = ir::constant_int(expr); constant && expr->type == ir::kInt32) return Value(*constant);
  if (auto* alias = std::get_if<ir::VarRef>(&expr->node)) return make_expr(context_, ir::var_ref(alias->var, span));
  if (is_atom(expr) || !builder_.in_kernel() || context_.maps_indices) return value;
  return make_expr(context_, TRY(builder_.let(name.str(), expr, span)));
}

// Later iterations and the code after a branch do not see a name that is bound anew inside. Where that would silently
// compute something else than the Python text says, it is an error.
Status Tracer::check_rebinding(Name name, const Value& previous, const Value& value, Span span) const {
  int block = binding_block(name);
  if (!builder_.in_kernel() || block == builder_.innermost_block() || !builder_.is_open(block)) return {};
  auto before = previous.as_number(), after = value.as_number();
  bool counts = before && after && *before != *after && builder_.control_inside(block);
  auto *old_expr = previous.get_if<TileExpr>(), *new_expr = value.get_if<TileExpr>();
  bool carries = old_expr && new_expr && builder_.loop_inside(block) && mentions(new_expr->expr, old_expr->expr, name);
  if (!counts && !carries) return {};
  return make_error(
      DiagnosticKind::staged_value_misused, span,
      fmt::format("`{}` is bound anew inside a run-time loop or branch, which the next iteration and the "
                  "code behind it would not see",
                  name.text()),
      fmt::format("declare it before with `{} = T.alloc_var(dtype)`; assigning to it then stores", name.text()));
}

void Tracer::give_name(Name name, const Value& value) {
  if (auto* object = value.get_if<BufferObject>(); object && !object->named) {
    object->buffer->name = name.str();
    object->named = true;
  }
  if (auto* object = value.get_if<VarObject>(); object && !object->named) {
    object->fresh->name = name.str();
    object->named = true;
  }
  if (auto* expression = value.get_if<TileExpr>())
    if (auto* reference = std::get_if<ir::VarRef>(&expression->expr->node))
      builder_.name_var(reference->var, name.str());
}

void Tracer::bound(Name name, const Value& value) {
  give_name(name, value);
  // `for i in range(4, 8)`: i is an expression of the loop's variable, which takes the name.
  if (auto* expression = value.get_if<TileExpr>())
    ir::walk(expression->expr, [&](const ir::Expr& part) {
      if (auto* reference = std::get_if<ir::VarRef>(&part->node)) builder_.name_var(reference->var, name.str());
    });
  bound_[local(name)] = builder_.innermost_block();
}

Status Tracer::annotated(Name name, const Value& annotation, Span span) {
  if (context_.declarations) return context_.declarations->annotate(context_, name, annotation, span);
  return {};
}

Status Tracer::loop_break(Span span) { return builder_.emit(ir::Break{}, span); }
Status Tracer::loop_continue(Span span) { return builder_.emit(ir::Continue{}, span); }

Status Tracer::before_unpacking(std::vector<Value>& values, Span span) {
  if (!builder_.in_kernel()) return {};
  for (Value& value : values) {
    if (auto* variable = value.get_if<VarObject>(); variable && variable->named)
      value = make_expr(context_, variable->load(span));
    auto* expression = value.get_if<TileExpr>();
    if (!expression || !contains_load(expression->expr)) continue;
    value = make_expr(context_, TRY(builder_.let("", expression->expr, span)));
  }
  return {};
}

Result<std::shared_ptr<StagedLoop>> Tracer::loop_over(const Value& iterable, Span span) {
  auto* range = iterable.get_if<RangeObject>();
  bool in_traced_function = context_.interpreter.frames().size() <= context_.traced_depth;
  if (!range || !builder_.in_kernel() || !in_traced_function) return std::shared_ptr<StagedLoop>();
  LoopRange bounds{integer_literal(range->start, std::nullopt, span), integer_literal(range->stop, std::nullopt, span),
                   range->step};
  return std::shared_ptr<StagedLoop>(
      std::make_shared<LoopObject>(context_, "range", ir::LoopKind::serial, std::vector<LoopRange>{std::move(bounds)}));
}

Result<std::optional<Value>> Tracer::builtin(std::string_view name, CallArgs& args) {
  const std::vector<Value>& given = args.positional;
  auto one = [&](ir::DType type) -> Result<std::optional<Value>> {
    return std::optional<Value>(TRY(convert(context_, given[0], type, args.span)));
  };
  if (name == "range") {
    TRY(require_kernel(context_, "`range` over a run-time value", args.span));
    LoopRange range = TRY(to_loop_range("range", given, args.span));
    return std::optional<Value>(
        std::make_shared<LoopObject>(context_, "range", ir::LoopKind::serial, std::vector<LoopRange>{range}));
  }
  if ((name == "min" || name == "max") && given.size() >= 2) {
    Value result = given[0];
    for (size_t i = 1; i < given.size(); ++i)
      result = TRY(
          apply_matched(context_, name == "min" ? ir::BinaryOp::min : ir::BinaryOp::max, result, given[i], args.span));
    return std::optional<Value>(std::move(result));
  }
  if (name == "pow" && given.size() == 2)
    return std::optional<Value>(TRY(apply_binary(context_, BinaryOp::pow, given[0], given[1], args.span)));
  if (given.size() != 1) return std::optional<Value>();
  if (name == "int") return one(ir::kInt32);
  if (name == "float") return one(ir::kFloat32);
  if (name == "bool") return one(ir::kBool);
  if (name == "abs")
    return std::optional<Value>(
        make_expr(context_, ir::math(ir::MathFn::abs, TRY(to_expr(given[0], args.span)), args.span)));
  return std::optional<Value>();
}

}  // namespace tilepilot::stage
