// Instances of classes that derive from list, dict, set or str: an instance with attributes and overridden methods that
// holds the built-in value. Operators reach that value through the methods of the built-in class (`__getitem__`,
// `__len__`, `__add__`, ...), so a class overrides them like any other and super() finds them.
#pragma once

#include "compiler/stage/python/objects/classes.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

struct HeldInstance final : InstanceObject {
  static constexpr Type kType{"instance"};
  HeldInstance(std::shared_ptr<ClassObject> made, Value value)
      : InstanceObject(std::move(made)), held(std::move(value)) {}
  const Type& type() const override { return kType; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Status set_attribute(Interpreter&, Name name, Value value, Span span) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value& other, bool reflected,
                                      Span span) override;
  const std::string* as_text() const override { return held.if_string(); }
  void release() override;

  Value held;
  bool items_are_attributes = false;  // after `self.__dict__ = self`
};

// The list, dict, set or string inside such an instance; any other value is itself.
const Value& held_value(const Value& value);

// A method of a built-in class as a member of it: takes the instance first, of that class or one that derives from it.
using DescriptorBody = std::function<Result<Value>(Interpreter&, const Value& self, CallArgs& args)>;
Value make_descriptor(Name owner, Name name, DescriptorBody body);
// `__len__`, `__getitem__` and the like of a built-in value; nullopt if its class has no method of that name.
std::optional<Value> protocol_method(Interpreter& interpreter, const Value& self, Name name);

// Gives the built-in classes those methods and makes classes able to derive from them.
void install_derivable_types(Interpreter& interpreter);

}  // namespace tilepilot::stage
