// The built-in object classes of the evaluator: containers, functions, classes, instances, modules.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "compiler/stage/python/value.h"

namespace tilepilot::stage {

struct NameHash {
  size_t operator()(Name name) const { return std::hash<const void*>()(name.id()); }
};

// Names to values, in order of first binding: module globals, class bodies, instance attributes, closures.
class Namespace {
 public:
  Value* find(Name name);
  void set(Name name, Value value);
  bool erase(Name name);
  const std::vector<Name>& names() const { return order_; }

 private:
  std::unordered_map<Name, Value, NameHash> values_;
  std::vector<Name> order_;
};
using NamespaceRef = std::shared_ptr<Namespace>;

struct TupleObject;  // and the rest: declared in full below so that hosts can build and read them

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
  Result<std::string> repr(Interpreter&) override;
  std::string name;
  Body body;
};

// A module or other bag of named values. `missing` (optional) is asked for names that are not there.
struct ModuleObject final : TypedObject<ModuleObject> {
  static constexpr Type kType{"module"};
  explicit ModuleObject(std::string name_) : name(std::move(name_)) {}
  Result<Value> get_attribute(Interpreter&, Name attribute, Span span) override;
  Status set_attribute(Interpreter&, Name attribute, Value value, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  void set(std::string_view attribute, Value value) { members.set(Name(attribute), std::move(value)); }
  void function(std::string_view attribute, BuiltinFunction::Body body);
  std::string name;
  Namespace members;
  std::function<Result<std::optional<Value>>(Interpreter&, Name, Span)> missing;
};

struct TupleObject final : TypedObject<TupleObject> {
  static constexpr Type kType{"tuple"};
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
  const std::vector<Value> items;
};

struct ListObject final : TypedObject<ListObject> {
  static constexpr Type kType{"list"};
  explicit ListObject(std::vector<Value> items_ = {}) : items(std::move(items_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
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
  std::vector<Value> items;
};

inline Value make_tuple(std::vector<Value> items) { return std::make_shared<TupleObject>(std::move(items)); }
inline Value make_list(std::vector<Value> items) { return std::make_shared<ListObject>(std::move(items)); }
// The items of a tuple or list, else null.
const std::vector<Value>* sequence_items(const Value& value);

struct SliceObject final : TypedObject<SliceObject> {
  static constexpr Type kType{"slice"};
  SliceObject(Value start_, Value stop_, Value step_) : start(start_), stop(stop_), step(step_) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Value start, stop, step;  // each None if absent
};

struct EllipsisObject final : TypedObject<EllipsisObject> {
  static constexpr Type kType{"ellipsis"};
  Result<std::string> repr(Interpreter&) override { return std::string("Ellipsis"); }
};

// One variable that a closure shares with its function.
struct Cell {
  std::optional<Value> value;
};
using CellRef = std::shared_ptr<Cell>;

class ScopeLayout;
struct ClassObject;

// A `def` or `lambda` with its defaults and the variables it captured.
struct FunctionObject final : TypedObject<FunctionObject> {
  static constexpr Type kType{"function"};
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  // What the body can see from outside, for cache keys: each captured variable, then each module global that the body
  // reads, with its present value. Unbound names are left out.
  std::vector<std::pair<Name, Value>> captured() const;

  Name name;
  syntax::ModuleRef module;  // keeps the tree alive
  const std::vector<syntax::Parameter>* parameters = nullptr;
  const syntax::FunctionDef* definition = nullptr;  // null for a lambda; holds the decorators with their spans
  const syntax::Expr* lambda_body = nullptr;        // null for a def
  std::vector<std::optional<Value>> defaults;       // one a parameter
  std::vector<std::optional<Value>> annotations;    // one a parameter, evaluated in the defining scope at `def`
  std::optional<Value> returns;                     // the annotation after `->`
  std::shared_ptr<const ScopeLayout> layout;        // which names are local, captured, global
  std::vector<CellRef> closure;                     // the captured variables, in the layout's order
  std::shared_ptr<ModuleObject> globals;
  std::weak_ptr<ClassObject> owner;  // the class whose body defined it, for super()
  Namespace attributes;
  Span span;
};

// A user-defined class or a native base class such as torch.nn.Module. `allocate` (optional, inherited) makes the
// instance; without it instances are plain InstanceObjects.
struct ClassObject final : TypedObject<ClassObject> {
  static constexpr Type kType{"type"};
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<std::string> repr(Interpreter&) override;
  // Looks `name` up in this class and its bases (C3 order), or null.
  Value* lookup(Name name);
  bool is_subclass_of(const ClassObject& other) const;

  Name name;
  std::vector<std::shared_ptr<ClassObject>> bases;
  std::vector<ClassObject*> resolution_order;  // this class first
  Namespace members;
  std::function<Result<ObjectRef>(Interpreter&, const std::shared_ptr<ClassObject>&)> allocate;
  // Optional: calling the class does this instead of allocating and running `__init__` (int, list, ...). Not inherited.
  std::function<Result<Value>(Interpreter&, CallArgs&)> construct;
  bool sealed = false;  // no class may derive from it
};

// An instance of a class. Native classes (nn.Module) derive from it to add state and hooks.
class InstanceObject : public Object {
 public:
  static constexpr Type kType{"object"};
  explicit InstanceObject(std::shared_ptr<ClassObject> c) : class_(std::move(c)) {}
  const Type& type() const override { return kType; }
  std::string_view type_name() const override { return class_->name.text(); }
  // Instance attributes, then class members (functions become bound methods, properties are called).
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<Value> call(Interpreter&, CallArgs args) override;  // __call__
  Result<std::string> repr(Interpreter&) override;
  // Operators look up the dunder methods of the class (__getitem__, __len__, __iter__, __add__, __eq__, ...).
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Result<int64_t> length(Interpreter&, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<std::optional<Value>> unary(Interpreter&, UnaryOp op, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<Value> enter(Interpreter&, Span span) override;
  Status exit(Interpreter&, Span span) override;

  InstanceObject* as_instance() override { return this; }
  Result<Value> call_method(Interpreter&, Name name, CallArgs args, Span name_span) override;
  Result<bool> truth(Interpreter&, Span span) override;
  Result<std::string> str(Interpreter&) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  Status delete_item(Interpreter&, const Value& index, Span span) override;
  Result<std::optional<Value>> binary_in_place(Interpreter&, BinaryOp op, const Value& other, Span span) override;

  const std::shared_ptr<ClassObject>& class_object() const { return class_; }
  Namespace& attributes() { return attributes_; }

 private:
  std::shared_ptr<ClassObject> class_;
  Namespace attributes_;
};

// A function with its first argument bound.
struct BoundMethod final : TypedObject<BoundMethod> {
  static constexpr Type kType{"method"};
  BoundMethod(Value self_, Value function_) : self(std::move(self_)), function(std::move(function_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Value self, function;
};

}  // namespace tilepilot::stage
