// What changes how a class member is reached through an instance: property, staticmethod, classmethod; and super().
#pragma once

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

struct PropertyObject final : TypedObject<PropertyObject> {
  static constexpr Type kType{"property"};
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;  // setter, getter, deleter
  Value getter, setter, deleter;
};

struct StaticMethod final : TypedObject<StaticMethod> {
  static constexpr Type kType{"staticmethod"};
  explicit StaticMethod(Value function_) : function(std::move(function_)) {}
  Result<Value> call(Interpreter& interpreter, CallArgs args) override;
  Value function;
};

struct ClassMethod final : TypedObject<ClassMethod> {
  static constexpr Type kType{"classmethod"};
  explicit ClassMethod(Value function_) : function(std::move(function_)) {}
  Value function;
};

// What a binary method returns to let the other operand try.
struct NotImplementedObject final : TypedObject<NotImplementedObject> {
  static constexpr Type kType{"NotImplementedType"};
  Result<std::string> repr(Interpreter&) override { return std::string("NotImplemented"); }
};

// Attribute look-up that starts after `owner` in the resolution order of `self`'s class.
struct SuperObject final : TypedObject<SuperObject> {
  static constexpr Type kType{"super"};
  SuperObject(std::shared_ptr<ClassObject> owner_, Value self_) : owner(std::move(owner_)), self(std::move(self_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  std::shared_ptr<ClassObject> owner;
  Value self;
};

// A new instance, before `__init__`: what object.__new__(class) gives.
Result<Value> new_instance(Interpreter& interpreter, const std::shared_ptr<ClassObject>& class_object);
// The method `name` of the class of `member` if that is an instance, bound to it: `__get__`, `__set__`, `__set_name__`.
std::optional<Value> descriptor_method(const Value& member, Name name);

// What `instance.name` gives for a member found in a class: functions are bound, properties called.
Result<Value> bind_member(Interpreter& interpreter, const Value& member, const Value& instance,
                          const ClassObject& found_in, Span span);

}  // namespace tilepilot::stage
