#include "compiler/stage/python/objects/value.h"

#include <fmt/format.h>

#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

std::string_view Value::type_name() const {
  if (auto* object = if_object()) return (*object)->type_name();
  if (if_string()) return kStrType.name;
  if (if_int()) return kIntType.name;
  if (if_float()) return kFloatType.name;
  return if_bool() ? kBoolType.name : kNoneType.name;
}

const Value* CallArgs::keyword(std::string_view name) const {
  for (const auto& [key, value] : keywords) {
    if (key.text() == name) return &value;
  }
  return nullptr;
}

Result<Value> Object::get_attribute(Interpreter&, Name name, Span span) {
  return no_attribute(type_name(), name, span);
}

Status Object::set_attribute(Interpreter&, Name name, Value, Span span) {
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("'{}' object has no attribute '{}' that can be set", type_name(), name.text()));
}

Result<Value> Object::call(Interpreter&, CallArgs args) {
  return type_error(args.span, fmt::format("'{}' object is not callable", type_name()));
}

Result<Value> Object::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  Value method = TRY(get_attribute(interpreter, name, name_span));
  return interpreter.call(method, std::move(args));
}

Result<Value> Object::get_item(Interpreter&, const Value&, Span span) {
  return type_error(span, fmt::format("'{}' object is not subscriptable", type_name()));
}

Status Object::set_item(Interpreter&, const Value&, Value, Span span) {
  return type_error(span, fmt::format("'{}' object does not support item assignment", type_name()));
}

Status Object::delete_item(Interpreter&, const Value&, Span span) {
  return type_error(span, fmt::format("'{}' object does not support item deletion", type_name()));
}

Result<int64_t> Object::length(Interpreter&, Span span) {
  return type_error(span, fmt::format("object of type '{}' has no len()", type_name()));
}

Result<std::unique_ptr<Iterator>> Object::iterate(Interpreter&, Span span) {
  return type_error(span, fmt::format("'{}' object is not iterable", type_name()));
}

Result<bool> Object::contains(Interpreter& interpreter, const Value& item, Span span) {
  auto iterator = iterate(interpreter, span);
  if (!iterator.ok()) return type_error(span, fmt::format("argument of type '{}' is not iterable", type_name()));
  while (std::optional<Value> each = TRY((*iterator)->next(interpreter))) {
    if (TRY(interpreter.equal(*each, item, span))) return true;
  }
  return false;
}

Result<bool> Object::truth(Interpreter&, Span) { return true; }

Result<std::string> Object::repr(Interpreter&) { return fmt::format("<{} object>", type_name()); }

Result<std::optional<Value>> Object::unary(Interpreter&, UnaryOp, Span) { return std::optional<Value>(); }

Result<std::optional<Value>> Object::binary(Interpreter&, BinaryOp, const Value&, bool, Span) {
  return std::optional<Value>();
}

Result<std::optional<Value>> Object::binary_in_place(Interpreter&, BinaryOp, const Value&, Span) {
  return std::optional<Value>();
}

Result<std::optional<Value>> Object::compare(Interpreter&, CompareOp, const Value&, Span) {
  return std::optional<Value>();
}

Result<size_t> Object::hash(Interpreter&, Span) { return std::hash<const void*>()(this); }

Result<Value> Object::enter(Interpreter&, Span span) {
  return type_error(span, fmt::format("'{}' object does not support the context manager protocol", type_name()));
}

Status Object::exit(Interpreter&, Span) { return {}; }

}  // namespace tilepilot::stage
