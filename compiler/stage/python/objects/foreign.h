// What stands in for a module that a script imports and nobody has, such as one for an optional comparison, and for a
// name that a module of the host lacks. Its names
// can be passed on, subscripted, joined with `|`, derived from and used as decorators; using them for anything else is
// an error that names the module and shows where it was imported.
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

struct ForeignObject final : TypedObject<ForeignObject> {
  static constexpr Type kType{"unavailable"};
  ForeignObject(std::string name_, std::string module_, Span imported_, std::optional<std::string> lacking_hint_ = {})
      : name(std::move(name_)),
        module(std::move(module_)),
        imported(imported_),
        lacking_hint(std::move(lacking_hint_)) {}

  Error use(Interpreter& interpreter, Span span) const;

  Result<Value> get_attribute(Interpreter&, Name attribute, Span span) override;
  Result<Value> get_item(Interpreter&, const Value&, Span) override { return Value(shared_from_this()); }
  Result<Value> call(Interpreter& interpreter, CallArgs args) override { return use(interpreter, args.span); }
  Status set_attribute(Interpreter& interpreter, Name, Value, Span span) override { return use(interpreter, span); }
  Status set_item(Interpreter& interpreter, const Value&, Value, Span span) override { return use(interpreter, span); }
  Result<int64_t> length(Interpreter& interpreter, Span span) override { return use(interpreter, span); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter& interpreter, Span span) override {
    return use(interpreter, span);
  }
  Result<bool> contains(Interpreter& interpreter, const Value&, Span span) override { return use(interpreter, span); }
  Result<bool> truth(Interpreter& interpreter, Span span) override { return use(interpreter, span); }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> unary(Interpreter& interpreter, UnaryOp, Span span) override {
    return use(interpreter, span);
  }
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp op, const Value& other, Span span) override;
  Result<Value> enter(Interpreter& interpreter, Span span) override { return use(interpreter, span); }

  const std::string name;    // "triton.jit", or the function or class that needs the module
  const std::string module;  // "triton"
  const Span imported;
  // Given if the module is here and lacks this name: what may be meant instead, or "".
  const std::optional<std::string> lacking_hint;
};

// The module itself.
std::shared_ptr<ModuleObject> make_foreign_module(const std::string& name, Span imported);
bool is_foreign_module(Interpreter& interpreter, const ModuleObject& module);

// If the error is the use of such a name: what stands in for the `definition` that could not be made without it.
std::shared_ptr<ForeignObject> stand_in_for(Name definition, const Diagnostic& error);

}  // namespace tilepilot::stage
