// Binding names and assigning to targets: names, attributes, items, and tuples of them.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

using namespace syntax;

namespace {

Error cannot_unpack_count(const std::vector<ExprPtr>& targets, size_t starred, size_t given, Span span) {
  size_t wanted = targets.size() - (starred < targets.size() ? 1 : 0);
  if (given > wanted) return value_error(span, fmt::format("too many values to unpack (expected {})", wanted));
  return value_error(span, fmt::format("not enough values to unpack (expected {}{}, got {})",
                                       starred < targets.size() ? "at least " : "", wanted, given));
}

}  // namespace

void Evaluator::bind_parameters(std::vector<Value> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Slot slot = activation_.layout.parameters[i];
    if (slot.storage == Storage::local)
      activation_.locals[slot.index] = std::move(values[i]);
    else
      activation_.cells[slot.index]->value = std::move(values[i]);
  }
}

void Evaluator::bind(Name name, Value value) {
  if (activation_.class_object && !activation_.layout.declares_outside(name)) {
    activation_.class_object->members.set(name, std::move(value));
    return;
  }
  Slot slot = activation_.layout.find(name);
  switch (slot.storage) {
    case Storage::local:
      activation_.locals[slot.index] = std::move(value);
      return;
    case Storage::cell:
      activation_.cells[slot.index]->value = std::move(value);
      return;
    case Storage::captured:
      (*activation_.captured)[slot.index]->value = std::move(value);
      return;
    case Storage::global:
      activation_.globals->members.set(name, std::move(value));
  }
}

Status Evaluator::unbind(Name name, Span span) {
  Slot slot = activation_.layout.find(name);
  if (!find_name(name, slot)) return unknown_name(name, slot, span);
  if (activation_.class_object && activation_.class_object->members.erase(name)) return {};
  switch (slot.storage) {
    case Storage::local:
      activation_.locals[slot.index].reset();
      break;
    case Storage::cell:
      activation_.cells[slot.index]->value.reset();
      break;
    case Storage::captured:
      (*activation_.captured)[slot.index]->value.reset();
      break;
    case Storage::global:
      activation_.globals->members.erase(name);
  }
  return {};
}

Status Evaluator::assign_name(Name name, Value value, Intercept intercept, Span span) {
  Staging* staging = interpreter_.staging_;
  if (staging && intercept == Intercept::no) staging->bound(name, value);
  if (!staging || intercept == Intercept::no || activation_.layout.kind == ScopeLayout::Kind::class_body) {
    bind(name, std::move(value));
    return {};
  }
  const Value* previous = find_bound_name(name);
  std::optional<Value> bound = TRY(staging->assign(name, previous, std::move(value), span));
  if (bound) bind(name, *std::move(bound));
  return {};
}

// What this scope itself binds `name` to; a built-in of that name does not count.
const Value* Evaluator::find_bound_name(Name name) {
  Slot slot = activation_.layout.find(name);
  if (slot.storage == Storage::global) return activation_.globals->members.find(name);
  return find_name(name, slot);
}

Status Evaluator::assign(const Expr& target, Value value, Intercept intercept) {
  if (auto* name = std::get_if<NameExpr>(&target.node)) {
    return assign_name(name->name, std::move(value), intercept, target.span);
  }
  if (auto* attribute = std::get_if<AttributeExpr>(&target.node)) {
    Value object = TRY(eval(*attribute->object));
    return interpreter_.set_attribute(object, attribute->name, std::move(value), attribute->name_span);
  }
  if (auto* subscript = std::get_if<SubscriptExpr>(&target.node)) {
    Value object = TRY(eval(*subscript->object));
    Value index = TRY(eval(*subscript->index));
    return interpreter_.set_item(object, index, std::move(value), target.span);
  }
  if (auto* tuple = std::get_if<TupleExpr>(&target.node)) return unpack(tuple->items, value, intercept, target.span);
  if (auto* list = std::get_if<ListExpr>(&target.node)) return unpack(list->items, value, intercept, target.span);
  return make_error(DiagnosticKind::syntax_error, target.span, "cannot assign to this expression");
}

Status Evaluator::unpack(const std::vector<ExprPtr>& targets, const Value& value, Intercept intercept, Span span) {
  auto unpacked = interpreter_.to_vector(value, span);
  if (!unpacked.ok()) {
    if (unpacked.error().kind != DiagnosticKind::type_error || unpacked.error().thrown) {
      return std::move(unpacked).take_error();
    }
    return type_error(span, fmt::format("cannot unpack non-iterable {} object", value.type_name()));
  }
  std::vector<Value> values = *std::move(unpacked);
  size_t starred = targets.size();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (std::holds_alternative<StarredExpr>(targets[i]->node)) starred = i;
  }
  bool fits = starred == targets.size() ? values.size() == targets.size() : values.size() + 1 >= targets.size();
  if (!fits) return cannot_unpack_count(targets, starred, values.size(), span);
  if (interpreter_.staging_ && intercept == Intercept::yes) {
    TRY(interpreter_.staging_->before_unpacking(values, span));
  }
  size_t extra = values.size() + 1 - targets.size();  // items of the starred target, if there is one
  for (size_t i = 0, next = 0; i < targets.size(); ++i) {
    if (i != starred) {
      TRY(assign(*targets[i], std::move(values[next++]), intercept));
      continue;
    }
    auto first = values.begin() + static_cast<std::ptrdiff_t>(next);
    std::vector<Value> rest(first, first + static_cast<std::ptrdiff_t>(extra));
    next += extra;
    TRY(assign(*std::get<StarredExpr>(targets[i]->node).value, make_list(std::move(rest)), intercept));
  }
  return {};
}

Status Evaluator::remove(const Expr& target) {
  if (auto* name = std::get_if<NameExpr>(&target.node)) return unbind(name->name, target.span);
  if (auto* subscript = std::get_if<SubscriptExpr>(&target.node)) {
    Value object = TRY(eval(*subscript->object));
    Value index = TRY(eval(*subscript->index));
    return interpreter_.delete_item(object, index, target.span);
  }
  if (auto* attribute = std::get_if<AttributeExpr>(&target.node)) {
    Value object = TRY(eval(*attribute->object));
    return interpreter_.delete_attribute(object, attribute->name, attribute->name_span);
  }
  const std::vector<ExprPtr>* items = nullptr;
  if (auto* tuple = std::get_if<TupleExpr>(&target.node)) items = &tuple->items;
  if (auto* list = std::get_if<ListExpr>(&target.node)) items = &list->items;
  if (!items) return make_error(DiagnosticKind::syntax_error, target.span, "cannot delete this expression");
  for (const ExprPtr& each : *items) TRY(remove(*each));
  return {};
}

Result<Flow> Evaluator::visit(const AssignStmt& node, Span) {
  Value value = TRY(eval(*node.value));
  for (size_t i = 0; i + 1 < node.targets.size(); ++i) TRY(assign(*node.targets[i], value, Intercept::yes));
  TRY(assign(*node.targets.back(), std::move(value), Intercept::yes));
  return Flow::normal;
}

Result<Flow> Evaluator::visit(const AugAssignStmt& node, Span span) {
  if (auto* subscript = std::get_if<SubscriptExpr>(&node.target->node)) {
    Value object = TRY(eval(*subscript->object));
    Value index = TRY(eval(*subscript->index));
    Value old = TRY(interpreter_.get_item(object, index, node.target->span));
    Value value = TRY(interpreter_.binary_in_place(node.op, old, TRY(eval(*node.value)), span));
    TRY(interpreter_.set_item(object, index, std::move(value), node.target->span));
    return Flow::normal;
  }
  if (auto* attribute = std::get_if<AttributeExpr>(&node.target->node)) {
    Value object = TRY(eval(*attribute->object));
    Value old = TRY(interpreter_.get_attribute(object, attribute->name, attribute->name_span));
    Value value = TRY(interpreter_.binary_in_place(node.op, old, TRY(eval(*node.value)), span));
    TRY(interpreter_.set_attribute(object, attribute->name, std::move(value), attribute->name_span));
    return Flow::normal;
  }
  Value old = TRY(eval(*node.target));
  Value value = TRY(interpreter_.binary_in_place(node.op, old, TRY(eval(*node.value)), span));
  TRY(assign(*node.target, std::move(value), Intercept::yes));
  return Flow::normal;
}

Result<Flow> Evaluator::visit(const AnnAssignStmt& node, Span span) {
  auto* name = std::get_if<NameExpr>(&node.target->node);
  bool traced = interpreter_.staging_ && activation_.layout.kind == ScopeLayout::Kind::function;
  if (traced && name && !node.value) {
    Value annotation = TRY(eval(*node.annotation));
    TRY(interpreter_.staging_->annotated(name->name, annotation, span));
    return Flow::normal;
  }
  // As in Python, the annotations of local variables are not evaluated.
  if (name && activation_.class_object) TRY(annotate_member(name->name, *node.annotation));
  if (node.value) TRY(assign(*node.target, TRY(eval(*node.value)), Intercept::yes));
  return Flow::normal;
}

Status Evaluator::annotate_member(Name name, const Expr& annotation) {
  static const Name kAnnotations("__annotations__");
  Namespace& members = activation_.class_object->members;
  Value value = TRY(annotation_value(annotation));
  if (!members.find(kAnnotations)) members.set(kAnnotations, make_dict());
  auto* dict = members.find(kAnnotations)->get_if<DictObject>();
  if (!dict) return {};
  return dict->table.set(interpreter_, Value(name.text()), std::move(value), annotation.span);
}

Result<Flow> Evaluator::visit(const DeleteStmt& node, Span) {
  for (const ExprPtr& each : node.targets) TRY(remove(*each));
  return Flow::normal;
}

}  // namespace tilepilot::stage
