// What a Python expression evaluates to: a small scalar held directly, or a reference to an `Object`. The evaluator
// core knows only this interface; tile expressions (compiler/stage/tile) and tensors (eval) are Objects like any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/stage/python/objects/drop.h"
#include "compiler/syntax/tree.h"

namespace tilepilot::stage {

class Object;
class InstanceObject;
class Interpreter;
class Value;
using ObjectRef = std::shared_ptr<Object>;
using syntax::BinaryOp;
using syntax::CompareOp;
using syntax::Name;
using syntax::UnaryOp;

// The identity of a C++ object class; `Value::get_if<T>()` compares addresses of `T::kType`.
struct Type {
  std::string_view name;  // as Python's type(x).__name__ would show it
};

struct None {
  friend bool operator==(None, None) = default;
};

class Value {
 public:
  Value() = default;  // None
  Value(None) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(ObjectRef object) : data_(std::move(object)) {}
  template <class T>
  requires std::is_base_of_v<Object, T> Value(std::shared_ptr<T> object) : data_(ObjectRef(std::move(object))) {}
  Value(const Value&) = default;
  Value(Value&&) noexcept = default;
  Value& operator=(const Value&) = default;
  Value& operator=(Value&&) noexcept = default;
  ~Value() {
    if (auto* object = std::get_if<ObjectRef>(&data_); object && object->use_count() == 1) drop(std::move(*object));
  }

  bool is_none() const { return std::holds_alternative<None>(data_); }
  const bool* if_bool() const { return std::get_if<bool>(&data_); }
  const int64_t* if_int() const { return std::get_if<int64_t>(&data_); }  // not a bool
  const double* if_float() const { return std::get_if<double>(&data_); }
  const std::string* if_string() const {
    auto* text = std::get_if<std::shared_ptr<const std::string>>(&data_);
    return text ? text->get() : nullptr;
  }
  const ObjectRef* if_object() const { return std::get_if<ObjectRef>(&data_); }
  // A bool or int as an integer, as Python's `__index__` gives it.
  std::optional<int64_t> as_index() const {
    if (auto* integer = if_int()) return *integer;
    if (auto* boolean = if_bool()) return *boolean ? 1 : 0;
    return std::nullopt;
  }
  // A bool, int or float as a double.
  std::optional<double> as_number() const {
    if (auto* real = if_float()) return *real;
    if (auto index = as_index()) return static_cast<double>(*index);
    return std::nullopt;
  }
  // The object, if it is exactly of class T (T::kType); else null.
  template <class T>
  T* get_if() const;
  template <class T>
  std::shared_ptr<T> get_shared() const;

  std::string_view type_name() const;

  using Data = std::variant<None, bool, int64_t, double, std::shared_ptr<const std::string>, ObjectRef>;
  const Data& data() const { return data_; }

 private:
  Data data_;
};

// The arguments of one call, evaluated; `span` is the whole call expression.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<Name, Value>> keywords;
  Span span;
  std::vector<Span> positional_spans;  // as many as positional, or none

  const Value* keyword(std::string_view name) const;
};

// One pass over an iterable. `next` gives nullopt at the end.
class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual Result<std::optional<Value>> next(Interpreter& interpreter) = 0;
};

// A heap value. Every operation has a default that reports `type_error` in Python's words ("'X' object is not
// callable"). Binary and comparison operators return nullopt for "not implemented here", and the evaluator then asks
// the other operand. The built-ins int, float, abs, round and format ask for the methods `__int__`, `__index__`,
// `__float__`, `__abs__`, `__round__` and `__format__` through call_method.
class Object : public std::enable_shared_from_this<Object> {
 public:
  virtual ~Object() = default;
  virtual const Type& type() const = 0;
  virtual std::string_view type_name() const { return type().name; }

  virtual Result<Value> get_attribute(Interpreter&, Name name, Span span);
  virtual Status set_attribute(Interpreter&, Name name, Value value, Span span);
  virtual Result<Value> call(Interpreter&, CallArgs args);
  // `object.name(args)`; default: get_attribute, then call. Override it to save the bound method in between.
  virtual Result<Value> call_method(Interpreter&, Name name, CallArgs args, Span name_span);
  virtual Result<Value> get_item(Interpreter&, const Value& index, Span span);
  virtual Status set_item(Interpreter&, const Value& index, Value value, Span span);
  virtual Status delete_item(Interpreter&, const Value& index, Span span);
  virtual Result<int64_t> length(Interpreter&, Span span);
  virtual Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span);
  virtual Result<bool> contains(Interpreter&, const Value& item, Span span);  // default: by iterate and ==
  virtual Result<bool> truth(Interpreter&, Span span);                        // default: true
  virtual Result<std::string> repr(Interpreter&);                             // default: <X object>
  virtual Result<std::string> str(Interpreter& interpreter) { return repr(interpreter); }
  virtual Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span);
  // `reflected`: this object is the right operand.
  virtual Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected, Span span);
  // `a op= b`; default: nullopt, and the evaluator uses `binary` and rebinds the target.
  virtual Result<std::optional<Value>> binary_in_place(Interpreter&, BinaryOp op, const Value& other, Span span);
  // eq, ne, lt, le, gt, ge only; default: nullopt (eq and ne then compare identity).
  virtual Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span);
  virtual Result<size_t> hash(Interpreter&, Span span);  // default: the address
  virtual Result<Value> enter(Interpreter&, Span span);  // `with`
  virtual Status exit(Interpreter&, Span span);
  // What an object that is also a string says, else null.
  virtual const std::string* as_text() const { return nullptr; }
  // This object as an instance of a class (InstanceObject and what derives from it), else null.
  virtual InstanceObject* as_instance() { return nullptr; }
  // Drops what it refers to, to break cycles when the interpreter ends.
  virtual void release() {}
  virtual bool is_callable() const { return true; }  // for callable()
};

template <class T>
T* Value::get_if() const {
  auto* object = if_object();
  return object && *object && &(*object)->type() == &T::kType ? static_cast<T*>(object->get()) : nullptr;
}

template <class T>
std::shared_ptr<T> Value::get_shared() const {
  return get_if<T>() ? std::static_pointer_cast<T>(*if_object()) : nullptr;
}

}  // namespace tilepilot::stage
