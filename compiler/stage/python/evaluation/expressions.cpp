// Evaluation of expressions, except calls and comprehensions.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/evaluation/integers.h"
#include "compiler/stage/python/evaluation/poison.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

using namespace syntax;

Activation::Activation(const ScopeLayout& layout_, const ModuleRef& module_, std::shared_ptr<ModuleObject> globals_)
    : layout(layout_), module(module_), globals(std::move(globals_)), locals(layout_.local_count) {
  if (layout.cell_count == 0) return;
  cells.resize(layout.cell_count);
  for (CellRef& cell : cells) cell = std::make_shared<Cell>();
}

Result<Value> Evaluator::eval(const Expr& expression) {
  if (interpreter_.core_->near_stack_end()) TRY(interpreter_.check_stack(expression.span));
  return std::visit([&](const auto& node) { return visit(node, expression.span); }, expression.node);
}

Result<std::vector<Value>> Evaluator::items(const std::vector<ExprPtr>& expressions) {
  std::vector<Value> values;
  values.reserve(expressions.size());
  for (const ExprPtr& each : expressions) {
    if (auto* starred = std::get_if<StarredExpr>(&each->node)) {
      Value spread = TRY(eval(*starred->value));
      for (Value& item : TRY(interpreter_.to_vector(spread, each->span))) values.push_back(std::move(item));
    } else {
      values.push_back(TRY(eval(*each)));
    }
  }
  return values;
}

Result<bool> Evaluator::holds(const Value& condition, Span span) {
  if (auto* boolean = condition.if_bool()) return *boolean;
  return interpreter_.truth(condition, span);
}

Result<Value> Evaluator::visit(const NameExpr& node, Span span) {
  Slot slot = activation_.layout.find(node.name);
  if (Value* found = find_name(node.name, slot)) {
    if (interpreter_.staging_ && found->get_if<PoisonObject>()) return poisoned(span);
    return *found;
  }
  if (const auto& missing = activation_.globals->missing; missing && slot.storage == Storage::global) {
    if (std::optional<Value> stand_in = TRY(missing(interpreter_, node.name, span))) return *std::move(stand_in);
  }
  return unknown_name(node.name, slot, span);
}

Value* Evaluator::find_name(Name name, Slot slot) {
  if (activation_.class_object) {
    if (Value* found = activation_.class_object->members.find(name)) return found;
  }
  std::optional<Value>* variable = nullptr;
  switch (slot.storage) {
    case Storage::local:
      variable = &activation_.locals[slot.index];
      break;
    case Storage::cell:
      variable = &activation_.cells[slot.index]->value;
      break;
    case Storage::captured:
      variable = &(*activation_.captured)[slot.index]->value;
      break;
    case Storage::global:
      if (Value* found = activation_.globals->members.find(name)) return found;
      return interpreter_.builtins_.find(name);
  }
  return *variable ? &**variable : nullptr;
}

Error Evaluator::unknown_name(Name name, Slot slot, Span span) {
  if (slot.storage == Storage::local || slot.storage == Storage::cell) {
    return make_error(DiagnosticKind::unknown_name, span,
                      fmt::format("cannot access local variable '{}' before it has a value", name.text()));
  }
  if (slot.storage == Storage::captured) {
    return make_error(
        DiagnosticKind::unknown_name, span,
        fmt::format("cannot access free variable '{}' before its function gives it a value", name.text()));
  }
  std::vector<std::string_view> known;
  for (Name each : activation_.layout.names) known.push_back(each.text());
  for (Name each : activation_.globals->members.names()) known.push_back(each.text());
  for (Name each : interpreter_.builtins_.names()) known.push_back(each.text());
  std::string_view nearest = nearest_name(name.text(), known);
  return make_error(DiagnosticKind::unknown_name, span, fmt::format("name '{}' is not defined", name.text()),
                    nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest));
}

Result<Value> Evaluator::visit(const NoneLiteral&, Span) { return Value(); }

Result<Value> Evaluator::visit(const EllipsisLiteral&, Span) {
  static const Name kEllipsis("Ellipsis");
  return *interpreter_.builtins_.find(kEllipsis);
}

Result<Value> Evaluator::visit(const BoolLiteral& node, Span) { return Value(node.value); }
Result<Value> Evaluator::visit(const IntLiteral& node, Span span) {
  if (!node.wide) return Value(node.value);
  TRY(check_digits(node.wide->digits.size(), node.wide->base, span));
  return make_integer(*BigInteger::parse(node.wide->digits, node.wide->base));
}
Result<Value> Evaluator::visit(const FloatLiteral& node, Span) { return Value(node.value); }
Result<Value> Evaluator::visit(const StringLiteral& node, Span) { return Value(node.value); }

Result<Value> Evaluator::visit(const FormattedString& node, Span span) {
  std::string text;
  for (const FormattedPart& part : node.parts) {
    text += part.text;
    if (!part.value) continue;
    text += part.self_text;
    Value value = TRY(eval(*part.value));
    std::string spec;
    if (part.format) spec = *TRY(eval(*part.format)).if_string();
    char conversion = part.conversion;
    if (!conversion && !part.format && !part.self_text.empty()) conversion = 'r';
    text += TRY(format_converted(interpreter_, value, conversion, spec, part.value->span));
  }
  if (static_cast<int64_t>(text.size()) > interpreter_.limits_.container_items) return too_large(interpreter_, span);
  return Value(std::move(text));
}

Result<Value> Evaluator::visit(const AttributeExpr& node, Span) {
  Value object = TRY(eval(*node.object));
  return interpreter_.get_attribute(object, node.name, node.name_span);
}

Result<Value> Evaluator::visit(const SubscriptExpr& node, Span span) {
  Value object = TRY(eval(*node.object));
  Value index = TRY(eval(*node.index));
  return interpreter_.get_item(object, index, span);
}

Result<Value> Evaluator::visit(const SliceExpr& node, Span) {
  Value start, stop, step;
  if (node.start) start = TRY(eval(*node.start));
  if (node.stop) stop = TRY(eval(*node.stop));
  if (node.step) step = TRY(eval(*node.step));
  return Value(std::make_shared<SliceObject>(std::move(start), std::move(stop), std::move(step)));
}

Result<Value> Evaluator::visit(const UnaryExpr& node, Span span) {
  Value operand = TRY(eval(*node.operand));
  if (node.op != UnaryOp::logical_not) return interpreter_.unary(node.op, operand, span);
  if (is_staged(operand)) return interpreter_.staging_->logical_not(operand, span);
  return Value(!TRY(holds(operand, node.operand->span)));
}

Result<Value> Evaluator::visit(const BinaryExpr& node, Span span) {
  Value left = TRY(eval(*node.left));
  Value right = TRY(eval(*node.right));
  return interpreter_.binary(node.op, left, right, span);
}

Result<Value> Evaluator::visit(const BoolExpr& node, Span span) {
  Value left = TRY(eval(*node.operands.front()));
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (is_staged(left)) {
      Value right = TRY(interpreter_.staging_->lazily([&] { return eval(*node.operands[i]); }));
      left = TRY(interpreter_.staging_->logical(node.is_and, left, right, span));
      continue;
    }
    if (TRY(holds(left, node.operands[i - 1]->span)) != node.is_and) return left;
    left = TRY(eval(*node.operands[i]));
  }
  return left;
}

Result<Value> Evaluator::visit(const CompareExpr& node, Span span) {
  Value left = TRY(eval(*node.first));
  std::optional<Value> so_far;
  for (size_t i = 0; i < node.ops.size(); ++i) {
    Value right = TRY(eval(*node.rest[i]));
    Value one = TRY(interpreter_.compare(node.ops[i], left, right, span));
    so_far = so_far ? TRY(interpreter_.staging_->logical(true, *so_far, one, span)) : std::move(one);
    if (i + 1 == node.ops.size()) break;
    if (!is_staged(*so_far)) {
      if (!TRY(holds(*so_far, span))) break;
      so_far.reset();
    }
    left = std::move(right);
  }
  return *std::move(so_far);
}

Result<Value> Evaluator::visit(const ConditionalExpr& node, Span span) {
  Value condition = TRY(eval(*node.condition));
  if (is_staged(condition)) {
    return interpreter_.staging_->conditional(
        condition, [&] { return eval(*node.then); }, [&] { return eval(*node.otherwise); }, span);
  }
  return eval(TRY(holds(condition, node.condition->span)) ? *node.then : *node.otherwise);
}

Result<Value> Evaluator::visit(const TupleExpr& node, Span) { return make_tuple(TRY(items(node.items))); }
Result<Value> Evaluator::visit(const ListExpr& node, Span) { return make_list(TRY(items(node.items))); }

Result<Value> Evaluator::visit(const SetExpr& node, Span span) {
  auto set = std::make_shared<SetObject>();
  for (Value& item : TRY(items(node.items))) TRY(set->table.set(interpreter_, std::move(item), None{}, span));
  return Value(std::move(set));
}

Result<Value> Evaluator::visit(const DictExpr& node, Span) {
  auto dict = std::make_shared<DictObject>();
  for (const auto& [key_expr, value_expr] : node.items) {
    if (!key_expr) {
      Value other = TRY(eval(*value_expr));
      auto* source = held_value(other).get_if<DictObject>();
      if (!source) return type_error(value_expr->span, fmt::format("'{}' object is not a mapping", other.type_name()));
      for (size_t i = 0; i < source->table.entries().size(); ++i) {
        const HashTable::Entry entry = source->table.entries()[i];
        if (entry.live) TRY(dict->table.set(interpreter_, entry.key, entry.value, value_expr->span));
      }
      continue;
    }
    Value key = TRY(eval(*key_expr));
    TRY(dict->table.set(interpreter_, std::move(key), TRY(eval(*value_expr)), key_expr->span));
  }
  return Value(std::move(dict));
}

Result<Value> Evaluator::visit(const StarredExpr&, Span span) {
  return make_error(DiagnosticKind::syntax_error, span, "a starred expression cannot stand here");
}

Result<Value> Evaluator::visit(const NamedExpr& node, Span span) {
  Value value = TRY(eval(*node.value));
  TRY(assign_name(node.name, std::move(value), Intercept::yes, span));
  return visit(NameExpr{node.name}, span);
}

Result<Value> Evaluator::visit(const LambdaExpr& node, Span span) {
  std::shared_ptr<FunctionObject> function = make_function(&node, node.parameters);
  static const Name kLambda("<lambda>");
  function->name = kLambda;
  function->lambda_body = node.body.get();
  function->span = span;
  TRY(add_defaults(*function));
  return Value(std::move(function));
}

}  // namespace tilepilot::stage
