// The operators of the language, over any values: numbers and strings here, objects through their own hooks.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

namespace {

Result<std::string> repeat_text(Interpreter& interpreter, const std::string& text, int64_t count, Span span) {
  if (count <= 0 || text.empty()) return std::string();
  int64_t most = interpreter.limits().container_items / static_cast<int64_t>(text.size());
  if (count > most) return too_large(interpreter, span);
  std::string result;
  result.reserve(text.size() * static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) result += text;
  return result;
}

Result<std::optional<Value>> text_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right,
                                         Span span) {
  using Maybe = std::optional<Value>;
  const std::string* text = left.if_string();
  const std::string* other = right.if_string();
  if (op == BinaryOp::mod && text) return Maybe(TRY(format_percent(interpreter, *text, right, span)));
  if (op == BinaryOp::add && text && other) {
    if (static_cast<int64_t>(text->size() + other->size()) > interpreter.limits().container_items) {
      return too_large(interpreter, span);
    }
    return Maybe(*text + *other);
  }
  if (op == BinaryOp::mul) {
    auto count = text ? right.as_index() : left.as_index();
    if (count && (text || other)) return Maybe(TRY(repeat_text(interpreter, text ? *text : *other, *count, span)));
  }
  return Maybe();
}

Error unsupported_operands(BinaryOp op, const Value& left, const Value& right, Span span) {
  bool sequence = left.if_string() || left.get_if<ListObject>() || left.get_if<TupleObject>();
  if (op == BinaryOp::add && sequence) {
    return type_error(span, fmt::format("can only concatenate {} (not \"{}\") to {}", left.type_name(),
                                        right.type_name(), left.type_name()));
  }
  if (op == BinaryOp::mul && sequence) {
    return type_error(span, fmt::format("can't multiply sequence by non-int of type '{}'", right.type_name()));
  }
  std::string_view shown = op == BinaryOp::pow ? "** or pow()" : syntax::spelling(op);
  return type_error(span, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", shown, left.type_name(),
                                      right.type_name()));
}

Result<std::optional<Value>> object_binary(Interpreter& interpreter, BinaryOp op, const Value& left, const Value& right,
                                           Span span) {
  if (auto* object = left.if_object()) {
    if (auto result = TRY((*object)->binary(interpreter, op, right, false, span))) return result;
  }
  if (auto* object = right.if_object()) return (*object)->binary(interpreter, op, left, true, span);
  return std::optional<Value>();
}

}  // namespace

Result<Value> Interpreter::binary(BinaryOp op, const Value& left, const Value& right, Span span) {
  std::optional<Value> result;
  if (left.if_object() || right.if_object()) {
    result = TRY(object_binary(*this, op, left, right, span));
    if (!result && left.if_string()) result = TRY(text_binary(*this, op, left, right, span));
  } else if (left.if_string() || right.if_string()) {
    result = TRY(text_binary(*this, op, left, right, span));
  } else {
    result = TRY(number_binary(*this, op, left, right, span));
  }
  if (result) return *std::move(result);
  return unsupported_operands(op, left, right, span);
}

Result<Value> Interpreter::binary_in_place(BinaryOp op, const Value& left, const Value& right, Span span) {
  if (auto* object = left.if_object()) {
    if (auto result = TRY((*object)->binary_in_place(*this, op, right, span))) return *std::move(result);
  }
  return binary(op, left, right, span);
}

Result<Value> Interpreter::unary(UnaryOp op, const Value& operand, Span span) {
  if (op == UnaryOp::logical_not) return Value(!TRY(truth(operand, span)));
  std::optional<Value> result;
  if (auto* object = operand.if_object())
    result = TRY((*object)->unary(*this, op, span));
  else
    result = TRY(number_unary(op, operand));
  if (result) return *std::move(result);
  return type_error(span,
                    fmt::format("bad operand type for unary {}: '{}'", syntax::spelling(op), operand.type_name()));
}

Result<bool> Interpreter::truth(const Value& value, Span span) {
  if (auto* boolean = value.if_bool()) return *boolean;
  if (auto* integer = value.if_int()) return *integer != 0;
  if (auto* real = value.if_float()) return *real != 0;
  if (auto* text = value.if_string()) return !text->empty();
  if (auto* object = value.if_object()) return (*object)->truth(*this, span);
  return false;
}

Result<Value> Interpreter::get_attribute(const Value& object, Name name, Span span) {
  if (auto* reference = object.if_object()) return (*reference)->get_attribute(*this, name, span);
  if (object.if_string()) return string_methods().bind(object, name, span);
  if (object.as_index()) return integer_attribute(object, name, span);
  if (object.if_float()) return float_attribute(object, name, span);
  return no_attribute(object.type_name(), name, span);
}

Result<Value> Interpreter::call_method(const Value& object, Name name, CallArgs args, Span name_span) {
  if (auto* reference = object.if_object()) {
    return (*reference)->call_method(*this, name, std::move(args), name_span);
  }
  if (object.if_string() && string_methods().find(name)) return string_methods().call(*this, object, name, args);
  Value method = TRY(get_attribute(object, name, name_span));
  return call(method, std::move(args));
}

Status Interpreter::set_attribute(const Value& object, Name name, Value value, Span span) {
  if (auto* reference = object.if_object()) return (*reference)->set_attribute(*this, name, std::move(value), span);
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("'{}' object has no attribute '{}' that can be set", object.type_name(), name.text()));
}

Status Interpreter::delete_attribute(const Value& object, Name name, Span span) {
  auto* reference = object.if_object();
  if (InstanceObject* instance = reference ? (*reference)->as_instance() : nullptr) {
    Value* member = instance->class_object()->lookup(name);
    auto* property = member ? member->get_if<PropertyObject>() : nullptr;
    if (property && !property->deleter.is_none()) {
      const Value deleter = property->deleter;
      TRY(call(deleter, CallArgs{{object}, {}, span, {}}));
      return {};
    }
    if (instance->attributes().erase(name)) return {};
  }
  if (auto* module = object.get_if<ModuleObject>(); module && module->members.erase(name)) return {};
  if (auto* type = object.get_if<ClassObject>(); type && type->user_defined && type->members.erase(name)) return {};
  return no_attribute(object.type_name(), name, span);
}

Result<Value> Interpreter::get_item(const Value& object, const Value& index, Span span) {
  if (auto* reference = object.if_object()) return (*reference)->get_item(*this, index, span);
  if (auto* text = object.if_string()) return text_item(*text, index, span);
  return type_error(span, fmt::format("'{}' object is not subscriptable", object.type_name()));
}

Status Interpreter::set_item(const Value& object, const Value& index, Value value, Span span) {
  if (auto* reference = object.if_object()) return (*reference)->set_item(*this, index, std::move(value), span);
  return type_error(span, fmt::format("'{}' object does not support item assignment", object.type_name()));
}

Status Interpreter::delete_item(const Value& object, const Value& index, Span span) {
  if (auto* reference = object.if_object()) return (*reference)->delete_item(*this, index, span);
  return type_error(span, fmt::format("'{}' object does not support item deletion", object.type_name()));
}

Result<int64_t> Interpreter::length(const Value& value, Span span) {
  if (auto* reference = value.if_object()) return (*reference)->length(*this, span);
  if (auto* text = value.if_string()) return static_cast<int64_t>(count_characters(*text));
  return type_error(span, fmt::format("object of type '{}' has no len()", value.type_name()));
}

Result<std::unique_ptr<Iterator>> Interpreter::iterate(const Value& value, Span span) {
  if (auto* reference = value.if_object()) return (*reference)->iterate(*this, span);
  if (auto* text = value.if_string()) return iterate_over(split_characters(*text));
  return type_error(span, fmt::format("'{}' object is not iterable", value.type_name()));
}

Result<std::vector<Value>> Interpreter::to_vector(const Value& iterable, Span span) {
  // A class that derives from list may override `__iter__`.
  const std::vector<Value>* known = iterable.get_if<HeldInstance>() ? nullptr : sequence_items(iterable);
  if (known) return *known;
  auto* range = iterable.get_if<RangeObject>();
  if (range && range->count() > limits_.container_items) return too_large(*this, span);
  std::unique_ptr<Iterator> iterator = TRY(iterate(iterable, span));
  std::vector<Value> items;
  while (std::optional<Value> item = TRY(iterator->next(*this))) {
    TRY(charge(span));
    if (static_cast<int64_t>(items.size()) >= limits_.container_items) return too_large(*this, span);
    items.push_back(*std::move(item));
  }
  return items;
}

}  // namespace tilepilot::stage
