// Comparison, identity, membership and hashing.
#include <fmt/format.h>

#include <functional>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

constexpr CompareOp mirrored(CompareOp op) {
  switch (op) {
    case CompareOp::lt:
      return CompareOp::gt;
    case CompareOp::le:
      return CompareOp::ge;
    case CompareOp::gt:
      return CompareOp::lt;
    case CompareOp::ge:
      return CompareOp::le;
    default:
      return op;
  }
}

template <class T>
bool holds(CompareOp op, const T& a, const T& b) {
  switch (op) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    default:
      return a >= b;
  }
}

// Integers against floats are compared by value, without rounding the integer.
bool compare_mixed(CompareOp op, int64_t a, double b) {
  std::optional<int> order = compare_exactly(a, b);
  if (!order) return op == CompareOp::ne;
  return holds(op, *order, 0);
}

// Numbers with numbers, strings with strings; nullopt otherwise.
std::optional<bool> compare_scalars(CompareOp op, const Value& left, const Value& right) {
  const std::string* text = left.if_string();
  const std::string* other = right.if_string();
  if (text && other) return holds(op, *text, *other);
  std::optional<int64_t> a = left.as_index(), b = right.as_index();
  if (a && b) return holds(op, *a, *b);
  const double *x = left.if_float(), *y = right.if_float();
  if (x && y) return holds(op, *x, *y);
  if (a && y) return compare_mixed(op, *a, *y);
  if (x && b) return compare_mixed(mirrored(op), *b, *x);
  return std::nullopt;
}

bool is_same(const Value& left, const Value& right) {
  if (left.data().index() != right.data().index()) return false;
  if (auto* object = left.if_object()) return *object == *right.if_object();
  return left.is_none() || compare_scalars(CompareOp::eq, left, right).value_or(false);
}

Result<bool> contains(Interpreter& interpreter, const Value& container, const Value& item, Span span) {
  if (auto* object = container.if_object()) return (*object)->contains(interpreter, item, span);
  if (auto* text = container.if_string()) {
    const std::string* part = held_value(item).if_string();
    if (part) return text->find(*part) != std::string::npos;
    return type_error(span, fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
  }
  return type_error(span, fmt::format("argument of type '{}' is not iterable", container.type_name()));
}

}  // namespace

Result<Value> Interpreter::compare(CompareOp op, const Value& left, const Value& right, Span span) {
  if (op == CompareOp::is) return Value(is_same(left, right));
  if (op == CompareOp::is_not) return Value(!is_same(left, right));
  if (op == CompareOp::in) return Value(TRY(contains(*this, right, left, span)));
  if (op == CompareOp::not_in) return Value(!TRY(contains(*this, right, left, span)));
  if (auto* object = left.if_object()) {
    if (auto result = TRY((*object)->compare(*this, op, right, span))) return *std::move(result);
  }
  if (auto* object = right.if_object()) {
    if (auto result = TRY((*object)->compare(*this, mirrored(op), left, span))) return *std::move(result);
  }
  if (auto result = compare_scalars(op, left, right)) return Value(*result);
  if (op == CompareOp::eq) return Value(is_same(left, right));
  if (op == CompareOp::ne) return Value(!is_same(left, right));
  return type_error(span, fmt::format("'{}' not supported between instances of '{}' and '{}'", syntax::spelling(op),
                                      left.type_name(), right.type_name()));
}

Result<bool> Interpreter::equal(const Value& left, const Value& right, Span span) {
  if (!left.if_object() && !right.if_object()) {
    return compare_scalars(CompareOp::eq, left, right).value_or(left.is_none() && right.is_none());
  }
  if (is_same(left, right)) return true;
  TRY(check_stack(span));
  return truth(TRY(compare(CompareOp::eq, left, right, span)), span);
}

Result<size_t> Interpreter::hash(const Value& value, Span span) {
  if (auto index = value.as_index()) return std::hash<int64_t>()(*index);
  if (auto* text = value.if_string()) return std::hash<std::string>()(*text);
  if (auto* object = value.if_object()) {
    TRY(check_stack(span));
    return (*object)->hash(*this, span);
  }
  if (auto* real = value.if_float()) {
    // Equal numbers hash equally: 1.0 as 1.
    if (*real >= -0x1p63 && *real < 0x1p63 && static_cast<double>(static_cast<int64_t>(*real)) == *real) {
      return std::hash<int64_t>()(static_cast<int64_t>(*real));
    }
    return std::hash<double>()(*real);
  }
  return size_t{0x9e3779b9};
}

}  // namespace tilepilot::stage
