// The simplest objects of the evaluator: list, tuple, slice, built-in functions, modules.
#pragma once

#include <functional>

#include "compiler/stage/python/objects/namespace.h"
#include "compiler/stage/python/objects/value.h"

namespace tilepilot::stage {

struct ClassObject;
class ScopeLayout;

// What makes a tuple a named tuple; without names, a tuple of a class of its own, and its slices are of that class too.
struct TupleFields {
  std::weak_ptr<ClassObject> class_object;
  std::string class_name;
  std::vector<Name> names;
};

struct TupleObject;
// An attribute of a named tuple other than its fields: `_replace`, `_asdict`, methods of its class.
Result<Value> named_tuple_attribute(Interpreter&, TupleObject& self, ClassObject& class_object, Name name, Span span);

// Base of the concrete built-ins: `struct X final : TypedObject<X>` gives type() from X::kType.
template <class Derived>
class TypedObject : public Object {
 public:
  const Type& type() const override { return Derived::kType; }
};

// A function implemented in C++. `name` shows in messages.
struct BuiltinFunction final : TypedObject<BuiltinFunction> {
  static constexpr Type kType{"builtin_function_or_method"};
  using Body = std::function<Result<Value>(Interpreter&, CallArgs&)>;
  BuiltinFunction(std::string name_, Body body_) : name(std::move(name_)), body(std::move(body_)) {}
  Result<Value> call(Interpreter& interpreter, CallArgs args) override { return body(interpreter, args); }
  Result<Value> get_attribute(Interpreter&, Name attribute, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  std::string name;
  Body body;
  bool is_method = false;  // bound to the instance even as a member of a class written in Python
};

// A module or other bag of named values. `missing` (optional) is asked for names that are not there, and `changed`
// (optional) hears of what a program assigns, before it is so.
struct ModuleObject final : TypedObject<ModuleObject> {
  static constexpr Type kType{"module"};
  bool is_callable() const override { return false; }
  explicit ModuleObject(std::string name_) : name(std::move(name_)) {}
  Result<Value> get_attribute(Interpreter&, Name attribute, Span span) override;
  Status set_attribute(Interpreter&, Name attribute, Value value, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  void set(std::string_view attribute, Value value) { members.set(Name(attribute), std::move(value)); }
  void function(std::string_view attribute, BuiltinFunction::Body body);
  std::string name;
  Namespace members;
  std::function<Result<std::optional<Value>>(Interpreter&, Name, Span)> missing;
  std::function<Status(Interpreter&, Name, const Value&, Span)> changed;
  void release() override { members.clear(); }
};

struct TupleObject final : TypedObject<TupleObject> {
  static constexpr Type kType{"tuple"};
  bool is_callable() const override { return false; }
  explicit TupleObject(std::vector<Value> items_) : items(std::move(items_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(items.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return !items.empty(); }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  std::string_view type_name() const override;
  void release() override { items.clear(); }
  std::vector<Value> items;                   // never changed
  std::shared_ptr<const TupleFields> fields;  // of a named tuple; else null
};

struct ListObject final : TypedObject<ListObject> {
  static constexpr Type kType{"list"};
  bool is_callable() const override { return false; }
  explicit ListObject(std::vector<Value> items_ = {}) : items(std::move(items_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call_method(Interpreter&, Name name, CallArgs args, Span name_span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Status delete_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(items.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return !items.empty(); }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> binary_in_place(Interpreter&, BinaryOp, const Value&, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span span) override;  // type_error: unhashable
  void release() override { items.clear(); }
  std::vector<Value> items;
};

inline Value make_tuple(std::vector<Value> items) { return std::make_shared<TupleObject>(std::move(items)); }
inline Value make_list(std::vector<Value> items) { return std::make_shared<ListObject>(std::move(items)); }
// The items of a tuple or list, else null.
const std::vector<Value>* sequence_items(const Value& value);

struct SliceObject final : TypedObject<SliceObject> {
  static constexpr Type kType{"slice"};
  bool is_callable() const override { return false; }
  SliceObject(Value start_, Value stop_, Value step_) : start(start_), stop(stop_), step(step_) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  Value start, stop, step;  // each None if absent
};

struct EllipsisObject final : TypedObject<EllipsisObject> {
  static constexpr Type kType{"ellipsis"};
  bool is_callable() const override { return false; }
  Result<std::string> repr(Interpreter&) override { return std::string("Ellipsis"); }
};

}  // namespace tilepilot::stage
