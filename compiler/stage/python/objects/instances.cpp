// Instances of classes: attributes by way of the class, operators by way of its dunder methods.
#include <fmt/format.h>

#include <array>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

struct OperatorNames {
  Name plain, reflected, in_place;
};

const OperatorNames& names_of(BinaryOp op) {
  static const auto kNames = [] {
    constexpr std::string_view kStems[] = {"add", "sub",    "mul",    "matmul", "truediv", "floordiv", "mod",
                                           "pow", "lshift", "rshift", "and",    "or",      "xor"};
    std::array<OperatorNames, std::size(kStems)> names;
    for (size_t i = 0; i < names.size(); ++i) {
      names[i] = {Name(fmt::format("__{}__", kStems[i])), Name(fmt::format("__r{}__", kStems[i])),
                  Name(fmt::format("__i{}__", kStems[i]))};
    }
    return names;
  }();
  return kNames[static_cast<size_t>(op)];
}

Name name_of(CompareOp op) {
  static const Name kNames[] = {Name("__eq__"), Name("__ne__"), Name("__lt__"),
                                Name("__le__"), Name("__gt__"), Name("__ge__")};
  return kNames[static_cast<size_t>(op)];
}

Name name_of(UnaryOp op) {
  static const Name kNames[] = {Name("__pos__"), Name("__neg__"), Name("__invert__"), Name("__bool__")};
  return kNames[static_cast<size_t>(op)];
}

// A dunder method of the instance's class, bound; nullopt if there is none.
std::optional<Value> special(InstanceObject& instance, Name name) {
  Value* member = instance.class_object()->lookup(name);
  if (!member || member->is_none()) return std::nullopt;
  return Value(std::make_shared<BoundMethod>(Value(instance.shared_from_this()), *member));
}

bool is_not_implemented(Interpreter& interpreter, const Value& value) {
  auto* object = value.if_object();
  return object && *object == *interpreter.find_builtin("NotImplemented")->if_object();
}

// The result of a binary method; nullopt if there is none or it says NotImplemented.
Result<std::optional<Value>> call_binary(Interpreter& interpreter, InstanceObject& self, Name name, const Value& other,
                                         Span span) {
  std::optional<Value> method = special(self, name);
  if (!method) return std::optional<Value>();
  Value result = TRY(interpreter.call(*method, CallArgs{{other}, {}, span, {}}));
  if (is_not_implemented(interpreter, result)) return std::optional<Value>();
  return std::optional<Value>(std::move(result));
}

// The result of calling a dunder method; nullopt if the class has none.
Result<std::optional<Value>> call_special(Interpreter& interpreter, InstanceObject& self, std::string_view name,
                                          std::vector<Value> args, Span span) {
  std::optional<Value> method = special(self, Name(name));
  if (!method) return std::optional<Value>();
  return std::optional<Value>(TRY(interpreter.call(*method, CallArgs{std::move(args), {}, span, {}})));
}

Result<std::string> text_from(const std::optional<Value>& value, std::string_view method) {
  if (value->if_string()) return *value->if_string();
  return type_error(Span{}, fmt::format("{} returned non-string (type {})", method, value->type_name()));
}

// Calls `__next__` until StopIteration.
class MethodIterator final : public Iterator {
 public:
  MethodIterator(Value object, Span span) : object_(std::move(object)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    static const Name kNext("__next__");
    auto item = interpreter.call_method(object_, kNext, CallArgs{{}, {}, span_, {}}, span_);
    if (item.ok()) return std::optional<Value>(*std::move(item));
    if (is_raised(interpreter, item.error(), "StopIteration")) return std::optional<Value>();
    return std::move(item).take_error();
  }

 private:
  Value object_;
  Span span_;
};

// Iteration over `__getitem__(0)`, `(1)`, ... until IndexError.
class ItemIterator final : public Iterator {
 public:
  ItemIterator(Value object, Span span) : object_(std::move(object)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    auto item = interpreter.get_item(object_, Value(position_++), span_);
    if (item.ok()) return std::optional<Value>(*std::move(item));
    if (is_raised(interpreter, item.error(), "IndexError")) return std::optional<Value>();
    return std::move(item).take_error();
  }

 private:
  Value object_;
  Span span_;
  int64_t position_ = 0;
};

std::vector<std::string_view> attribute_names(InstanceObject& instance) {
  std::vector<std::string_view> names;
  for (Name name : instance.attributes().names()) names.push_back(name.text());
  for (ClassObject* each : instance.class_object()->resolution_order) {
    for (Name name : each->members.names()) names.push_back(name.text());
  }
  return names;
}

}  // namespace

Result<Value> InstanceObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  static const Name kClass("__class__"), kDict("__dict__"), kGetattr("__getattr__");
  if (Value* found = attributes_.find(name)) return *found;
  for (ClassObject* each : class_->resolution_order) {
    if (Value* member = each->members.find(name)) {
      Value found = *member;
      return bind_member(interpreter, found, Value(shared_from_this()), *each, span);
    }
  }
  if (name == kClass) return Value(class_);
  if (name == kDict) {
    auto dict = std::make_shared<DictObject>();
    for (Name each : attributes_.names()) {
      TRY(dict->table.set(interpreter, Value(each.text()), *attributes_.find(each), span));
    }
    return Value(std::move(dict));
  }
  if (std::optional<Value> hook = special(*this, kGetattr)) {
    return interpreter.call(*hook, CallArgs{{Value(name.text())}, {}, span, {}});
  }
  return no_attribute(type_name(), name, span, attribute_names(*this));
}

Status InstanceObject::set_attribute(Interpreter& interpreter, Name name, Value value, Span span) {
  static const Name kSetattr("__setattr__");
  Value* member = class_->lookup(name);
  if (auto* property = member ? member->get_if<PropertyObject>() : nullptr) {
    if (property->setter.is_none()) {
      return make_error(DiagnosticKind::unknown_attribute, span,
                        fmt::format("property '{}' of '{}' object has no setter", name.text(), type_name()));
    }
    Value setter = property->setter;
    TRY(interpreter.call(setter, CallArgs{{Value(shared_from_this()), std::move(value)}, {}, span, {}}));
    return {};
  }
  static const Name kSet("__set__");
  if (std::optional<Value> setter = member ? descriptor_method(*member, kSet) : std::nullopt) {
    TRY(interpreter.call(*setter, CallArgs{{Value(shared_from_this()), std::move(value)}, {}, span, {}}));
    return {};
  }
  Value* hook = class_->lookup(kSetattr);
  auto* native = hook ? hook->get_if<BuiltinFunction>() : nullptr;  // not object's own
  if (hook && (hook->get_if<FunctionObject>() || (native && (native->is_method || native->name != "__setattr__")))) {
    Value function = *hook;
    CallArgs args{{Value(shared_from_this()), Value(name.text()), std::move(value)}, {}, span, {}};
    TRY(interpreter.call(function, std::move(args)));
    return {};
  }
  attributes_.set(name, std::move(value));
  return {};
}

Result<Value> InstanceObject::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  Value* member = attributes_.find(name) ? nullptr : class_->lookup(name);
  if (!member || !member->get_if<FunctionObject>()) {
    return Object::call_method(interpreter, name, std::move(args), name_span);
  }
  Value function = *member;
  args.positional.insert(args.positional.begin(), Value(shared_from_this()));
  args.positional_spans.clear();
  return interpreter.call(function, std::move(args));
}

Result<Value> InstanceObject::call(Interpreter& interpreter, CallArgs args) {
  static const Name kCall("__call__");
  std::optional<Value> method = special(*this, kCall);
  if (!method) return Object::call(interpreter, std::move(args));
  return interpreter.call(*method, std::move(args));
}

Result<std::string> InstanceObject::repr(Interpreter& interpreter) {
  auto text = TRY(call_special(interpreter, *this, "__repr__", {}, Span{}));
  if (text) return text_from(text, "__repr__");
  return fmt::format("<{} object>", type_name());
}

Result<std::string> InstanceObject::str(Interpreter& interpreter) {
  auto text = TRY(call_special(interpreter, *this, "__str__", {}, Span{}));
  return text ? text_from(text, "__str__") : repr(interpreter);
}

Result<Value> InstanceObject::get_item(Interpreter& interpreter, const Value& index, Span span) {
  auto item = TRY(call_special(interpreter, *this, "__getitem__", {index}, span));
  return item ? Result<Value>(*std::move(item)) : Object::get_item(interpreter, index, span);
}

Status InstanceObject::set_item(Interpreter& interpreter, const Value& index, Value value, Span span) {
  auto done = TRY(call_special(interpreter, *this, "__setitem__", {index, value}, span));
  return done ? Status() : Object::set_item(interpreter, index, std::move(value), span);
}

Status InstanceObject::delete_item(Interpreter& interpreter, const Value& index, Span span) {
  auto done = TRY(call_special(interpreter, *this, "__delitem__", {index}, span));
  return done ? Status() : Object::delete_item(interpreter, index, span);
}

Result<int64_t> InstanceObject::length(Interpreter& interpreter, Span span) {
  auto length = TRY(call_special(interpreter, *this, "__len__", {}, span));
  if (!length) return Object::length(interpreter, span);
  if (!length->as_index()) return type_error(span, "__len__() should return an integer");
  if (*length->as_index() < 0) return value_error(span, "__len__() should return >= 0");
  return *length->as_index();
}

Result<bool> InstanceObject::truth(Interpreter& interpreter, Span span) {
  static const Name kBool("__bool__"), kLen("__len__");
  if (std::optional<Value> method = special(*this, kBool)) {
    Value result = TRY(interpreter.call(*method, CallArgs{{}, {}, span, {}}));
    if (auto* boolean = result.if_bool()) return *boolean;
    return type_error(span, "__bool__ should return bool");
  }
  if (special(*this, kLen)) return TRY(length(interpreter, span)) != 0;
  return true;
}

Result<std::unique_ptr<Iterator>> InstanceObject::iterate(Interpreter& interpreter, Span span) {
  static const Name kNext("__next__"), kGetItem("__getitem__");
  auto iterator = TRY(call_special(interpreter, *this, "__iter__", {}, span));
  if (!iterator) {
    if (!special(*this, kGetItem)) return Object::iterate(interpreter, span);
    return std::unique_ptr<Iterator>(std::make_unique<ItemIterator>(Value(shared_from_this()), span));
  }
  auto* object = iterator->if_object();
  InstanceObject* instance = object ? (*object)->as_instance() : nullptr;
  if (!instance || !special(*instance, kNext)) {
    if (instance)
      return type_error(span, fmt::format("iter() returned non-iterator of type '{}'", instance->type_name()));
    return interpreter.iterate(*iterator, span);
  }
  return std::unique_ptr<Iterator>(std::make_unique<MethodIterator>(*std::move(iterator), span));
}

Result<bool> InstanceObject::contains(Interpreter& interpreter, const Value& item, Span span) {
  auto found = TRY(call_special(interpreter, *this, "__contains__", {item}, span));
  return found ? interpreter.truth(*found, span) : Object::contains(interpreter, item, span);
}

Result<std::optional<Value>> InstanceObject::unary(Interpreter& interpreter, UnaryOp op, Span span) {
  std::optional<Value> method = special(*this, name_of(op));
  if (!method) return std::optional<Value>();
  return std::optional<Value>(TRY(interpreter.call(*method, CallArgs{{}, {}, span, {}})));
}

Result<std::optional<Value>> InstanceObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                    bool reflected, Span span) {
  const OperatorNames& names = names_of(op);
  return call_binary(interpreter, *this, reflected ? names.reflected : names.plain, other, span);
}

Result<std::optional<Value>> InstanceObject::binary_in_place(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                             Span span) {
  return call_binary(interpreter, *this, names_of(op).in_place, other, span);
}

Result<std::optional<Value>> InstanceObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                     Span span) {
  if (op > CompareOp::ge) return std::optional<Value>();
  auto result = TRY(call_binary(interpreter, *this, name_of(op), other, span));
  if (result || op != CompareOp::ne) return result;
  result = TRY(call_binary(interpreter, *this, name_of(CompareOp::eq), other, span));
  if (result) result = Value(!TRY(interpreter.truth(*result, span)));
  return result;
}

Result<size_t> InstanceObject::hash(Interpreter& interpreter, Span span) {
  auto hash = TRY(call_special(interpreter, *this, "__hash__", {}, span));
  if (hash) return interpreter.hash(*hash, span);
  static const Name kEq("__eq__");
  if (special(*this, kEq)) return type_error(span, fmt::format("unhashable type: '{}'", type_name()));
  return Object::hash(interpreter, span);
}

Result<Value> InstanceObject::enter(Interpreter& interpreter, Span span) {
  auto entered = TRY(call_special(interpreter, *this, "__enter__", {}, span));
  return entered ? Result<Value>(*std::move(entered)) : Object::enter(interpreter, span);
}

Status InstanceObject::exit(Interpreter& interpreter, Span span) {
  TRY(call_special(interpreter, *this, "__exit__", {Value(), Value(), Value()}, span));
  return {};
}

}  // namespace tilepilot::stage
