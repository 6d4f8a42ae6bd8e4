// Functions, classes, instances and bound methods.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

// One variable that a closure shares with its function.
struct Cell {
  std::optional<Value> value;
};
using CellRef = std::shared_ptr<Cell>;

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
  Value docstring() const;  // or None

  Name name;
  syntax::ModuleRef module;  // keeps the tree alive
  const std::vector<syntax::Parameter>* parameters = nullptr;
  const syntax::FunctionDef* definition = nullptr;  // null for a lambda; holds the decorators with their spans
  const syntax::Expr* lambda_body = nullptr;        // null for a def
  bool only_positional = false;                     // no *, **, keyword-only parameters
  std::vector<std::optional<Value>> defaults;       // one a parameter
  std::vector<std::optional<Value>> annotations;    // one a parameter, evaluated in the defining scope at `def`
  std::optional<Value> returns;                     // the annotation after `->`
  std::shared_ptr<const ScopeLayout> layout;        // which names are local, captured, global
  std::vector<CellRef> closure;                     // the captured variables, in the layout's order
  std::shared_ptr<ModuleObject> globals;
  std::weak_ptr<ClassObject> owner;  // the class whose body defined it, for super()
  Namespace attributes;
  Span span;
  void release() override;
};

// A user-defined class or a native base class such as torch.nn.Module. `allocate` (optional, inherited) makes the
// instance; without it instances are plain InstanceObjects.
struct ClassObject final : TypedObject<ClassObject> {
  static constexpr Type kType{"type"};
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
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
  // Optional, inherited: what a `class` statement that derives from this makes of the finished class (an enum, a named
  // tuple); the result is bound to the name.
  std::function<Result<Value>(Interpreter&, const std::shared_ptr<ClassObject>&, Span)> derive;
  const decltype(derive)* find_derive() const;
  // Optional: what iterating over the class gives (an enum's members).
  std::function<Result<std::unique_ptr<Iterator>>(Interpreter&, Span)> iterate_class;
  bool sealed = false;        // no class may derive from it
  bool user_defined = false;  // by a `class` statement: built-in functions among its members are not methods
  void release() override {
    members.clear();
    construct = nullptr;  // what it captured may know this class
    iterate_class = nullptr;
  }

 private:
  Result<Value> initialized(Interpreter&, Value instance, CallArgs args);
};
// `class name(bases)` without a body; no bases: derives from `object`. An error if the bases have no common order.
Result<std::shared_ptr<ClassObject>> make_class(Interpreter&, Name name,
                                                std::vector<std::shared_ptr<ClassObject>> bases, Span span);

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

  void release() override { attributes_.clear(); }

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
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  Value self, function;
};

}  // namespace tilepilot::stage
