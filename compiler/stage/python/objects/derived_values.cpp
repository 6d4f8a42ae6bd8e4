// Instances that hold a built-in value, and how the built-in classes make them.
#include "compiler/stage/python/objects/derived_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/protocol_methods.h"

namespace tilepilot::stage {

namespace {

bool is_own_dict(Name name) {
  static const Name kDict("__dict__");
  return name == kDict;
}

Result<Value> fill_list(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"list", {"iterable"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value> items;
  if (read[0]) items = TRY(interpreter.to_vector(*read[0], args.span));
  held_value(self).get_if<ListObject>()->items = std::move(items);
  return Value();
}

Result<Value> fill_dict_from_call(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static const Name kUpdate("update");
  return dict_methods().call(interpreter, held_value(self), kUpdate, args);
}

Result<Value> fill_set(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"set", {"iterable"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  HashTable table;
  if (read[0]) {
    for (Value& item : TRY(interpreter.to_vector(*read[0], args.span)))
      TRY(table.set(interpreter, std::move(item), None{}, args.span));
  }
  held_value(self).get_if<SetObject>()->table = std::move(table);
  return Value();
}

Result<Value> no_value(Interpreter&, const Value&, CallArgs&) { return Value(); }

template <class Held>
Result<ObjectRef> allocate(Interpreter&, const std::shared_ptr<ClassObject>& made) {
  return ObjectRef(std::make_shared<HeldInstance>(made, Value(std::make_shared<Held>())));
}

// str.__new__(class, object=""): strings never change, so they are made with their text.
Result<Value> new_text(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"__new__", {"cls", "object"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto made = read[0]->get_shared<ClassObject>();
  if (!made) return type_error(args.span, "str.__new__(X): X is not a type object");
  Value text = read[1] ? Value(TRY(interpreter.str(*read[1]))) : Value("");
  if (made->construct) return text;
  auto instance = std::make_shared<HeldInstance>(std::move(made), std::move(text));
  interpreter.watch(instance);
  return Value(std::move(instance));
}

struct DerivableType {
  std::string_view name;
  DescriptorBody initialize;
  Result<ObjectRef> (*allocate)(Interpreter&, const std::shared_ptr<ClassObject>&);  // null: made by `__new__`
};

}  // namespace

const Value& held_value(const Value& value) {
  auto* instance = value.get_if<HeldInstance>();
  return instance ? instance->held : value;
}

Result<Value> HeldInstance::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (auto* dict = items_are_attributes ? held.get_if<DictObject>() : nullptr) {
    if (is_own_dict(name)) return Value(shared_from_this());
    if (const Value* found = TRY(dict->find(interpreter, Value(name.text()), span))) return *found;
  }
  return InstanceObject::get_attribute(interpreter, name, span);
}

Status HeldInstance::set_attribute(Interpreter& interpreter, Name name, Value value, Span span) {
  if (is_own_dict(name) && held.get_if<DictObject>() && value.get_if<HeldInstance>() == this) {
    items_are_attributes = true;
    return {};
  }
  if (items_are_attributes) return held.get_if<DictObject>()->set_item(interpreter, Value(name.text()), value, span);
  return InstanceObject::set_attribute(interpreter, name, std::move(value), span);
}

// What the class does not say is between the other operand and the value held: `[1] + instance`.
Result<std::optional<Value>> HeldInstance::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                  bool reflected, Span span) {
  auto result = TRY(InstanceObject::binary(interpreter, op, other, reflected, span));
  if (result || !reflected || other.get_if<HeldInstance>()) return result;
  return std::optional<Value>(TRY(interpreter.binary(op, other, held, span)));
}

// What is held stays of its kind: others may still use it.
void HeldInstance::release() {
  InstanceObject::release();
  if (auto* object = held.if_object()) (*object)->release();
}

Value make_descriptor(Name owner, Name name, DescriptorBody body) {
  auto call = [owner, name, body = std::move(body)](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    const auto is_owner = [&](const ClassObject* base) { return base->name == owner; };
    const auto made = args.positional.empty() ? nullptr : interpreter.class_of(args.positional[0]);
    if (!made || std::none_of(made->resolution_order.begin(), made->resolution_order.end(), is_owner)) {
      return type_error(args.span, fmt::format("descriptor '{}' needs a '{}' object", name.text(), owner.text()));
    }
    Value self = std::move(args.positional[0]);
    args.positional.erase(args.positional.begin());
    if (!args.positional_spans.empty()) args.positional_spans.erase(args.positional_spans.begin());
    Value result = TRY(body(interpreter, self, args));
    // `a += b` gives the instance, not what it holds.
    auto *made_object = result.if_object(), *held_object = held_value(self).if_object();
    return made_object && held_object && *made_object == *held_object ? self : result;
  };
  return make_builtin(name.str(), std::move(call));
}

std::optional<Value> protocol_method(Interpreter& interpreter, const Value& self, Name name) {
  if (name.text().substr(0, 2) != "__") return std::nullopt;
  const Value* member = interpreter.class_of(self)->lookup(name);
  auto* builtin = member ? member->get_if<BuiltinFunction>() : nullptr;
  static const Name kInit("__init__"), kSetattr("__setattr__");
  if (!builtin || name == kInit || name == kSetattr) return std::nullopt;
  return Value(std::make_shared<BoundMethod>(self, *member));
}

void install_derivable_types(Interpreter& interpreter) {
  const DerivableType kTypes[] = {
      {"list", fill_list, allocate<ListObject>},
      {"dict", fill_dict_from_call, allocate<DictObject>},
      {"set", fill_set, allocate<SetObject>},
      {"str", no_value, nullptr},
  };
  static const Name kInit("__init__"), kNew("__new__");
  for (const DerivableType& each : kTypes) {
    ClassObject& made = *interpreter.find_builtin(each.name)->get_if<ClassObject>();
    made.sealed = false;
    if (each.allocate) made.allocate = each.allocate;
    made.members.set(kInit, make_descriptor(made.name, kInit, each.initialize));
    add_protocol_methods(made);
  }
  Value maker = std::make_shared<StaticMethod>(make_builtin("__new__", new_text));
  interpreter.find_builtin("str")->get_if<ClassObject>()->members.set(kNew, std::move(maker));
}

}  // namespace tilepilot::stage
