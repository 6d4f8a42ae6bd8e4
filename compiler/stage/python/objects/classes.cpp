// Classes: making them, the resolution order (C3), calling them, and their attributes.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

using Order = std::vector<ClassObject*>;

bool in_a_tail(ClassObject* candidate, const std::vector<Order>& lists) {
  return std::any_of(lists.begin(), lists.end(), [&](const Order& list) {
    return !list.empty() && std::find(list.begin() + 1, list.end(), candidate) != list.end();
  });
}

// Merges the bases' orders so that every class comes before its own bases; false if there is no such order.
bool merge_orders(std::vector<Order> lists, Order& result) {
  for (;;) {
    std::erase_if(lists, [](const Order& list) { return list.empty(); });
    if (lists.empty()) return true;
    auto good =
        std::find_if(lists.begin(), lists.end(), [&](const Order& list) { return !in_a_tail(list.front(), lists); });
    if (good == lists.end()) return false;
    ClassObject* next = good->front();
    result.push_back(next);
    for (Order& list : lists) {
      if (list.front() == next) list.erase(list.begin());
    }
  }
}

std::vector<std::string_view> member_names(const ClassObject& class_object) {
  std::vector<std::string_view> names;
  for (const ClassObject* each : class_object.resolution_order) {
    for (Name name : each->members.names()) names.push_back(name.text());
  }
  return names;
}

Result<Value> class_property(Interpreter& interpreter, ClassObject& self, Name name) {
  static const Name kName("__name__"), kQualifiedName("__qualname__"), kBases("__bases__"), kOrder("__mro__"),
      kDict("__dict__"), kClass("__class__");
  if (name == kName || name == kQualifiedName) return Value(self.name.text());
  if (name == kClass) return *interpreter.find_builtin("type");
  std::vector<Value> classes;
  if (name == kBases) {
    for (const auto& base : self.bases) classes.emplace_back(base);
    return make_tuple(std::move(classes));
  }
  if (name == kOrder) {
    for (ClassObject* each : self.resolution_order) classes.emplace_back(each->shared_from_this());
    return make_tuple(std::move(classes));
  }
  if (name == kDict) {
    auto dict = std::make_shared<DictObject>();
    for (Name each : self.members.names()) {
      TRY(dict->table.set(interpreter, Value(each.text()), *self.members.find(each), Span{}));
    }
    return Value(std::move(dict));
  }
  return Value();
}

// object.__new__(class, ...): what else it gets is for `__init__`.
Result<Value> object_new(Interpreter& interpreter, CallArgs& args) {
  auto class_object = args.positional.empty() ? nullptr : args.positional[0].get_shared<ClassObject>();
  if (!class_object) return type_error(args.span, "object.__new__(): not enough arguments");
  if (class_object->construct)
    return type_error(args.span,
                      fmt::format("object.__new__({0}) is not safe, use {0}.__new__()", class_object->name.text()));
  return new_instance(interpreter, class_object);
}

}  // namespace

Result<std::shared_ptr<ClassObject>> make_class(Interpreter& interpreter, Name name,
                                                std::vector<std::shared_ptr<ClassObject>> bases, Span span) {
  auto made = std::make_shared<ClassObject>();
  made->name = name;
  if (bases.empty()) bases.push_back(interpreter.find_builtin("object")->get_shared<ClassObject>());
  made->bases = std::move(bases);
  std::vector<Order> lists;
  Order direct;
  for (const auto& base : made->bases) {
    lists.push_back(base->resolution_order);
    direct.push_back(base.get());
  }
  lists.push_back(std::move(direct));
  made->resolution_order = {made.get()};
  if (!merge_orders(std::move(lists), made->resolution_order)) {
    return type_error(span, "cannot create a consistent method resolution order for the bases");
  }
  interpreter.watch(made);
  return made;
}

const decltype(ClassObject::derive)* ClassObject::find_derive() const {
  for (size_t i = 1; i < resolution_order.size(); ++i) {
    if (resolution_order[i]->derive) return &resolution_order[i]->derive;
  }
  return nullptr;
}

Value* ClassObject::lookup(Name member) {
  for (ClassObject* each : resolution_order) {
    if (Value* found = each->members.find(member)) return found;
  }
  return nullptr;
}

bool ClassObject::is_subclass_of(const ClassObject& other) const {
  return std::find(resolution_order.begin(), resolution_order.end(), &other) != resolution_order.end();
}

Result<Value> ClassObject::call(Interpreter& interpreter, CallArgs args) {
  static const Name kNew("__new__");
  if (construct) return construct(interpreter, args);
  auto self = std::static_pointer_cast<ClassObject>(shared_from_this());
  if (Value* maker = lookup(kNew)) {
    Value function = *maker;
    if (auto* wrapped = function.get_if<StaticMethod>()) function = Value(wrapped->function);
    CallArgs with_class = args;
    with_class.positional.insert(with_class.positional.begin(), self);
    with_class.positional_spans.clear();
    Value made = TRY(interpreter.call(function, std::move(with_class)));
    InstanceObject* instance = made.if_object() ? (*made.if_object())->as_instance() : nullptr;
    if (!instance || !instance->class_object()->is_subclass_of(*self)) return made;
    return initialized(interpreter, std::move(made), std::move(args));
  }
  return initialized(interpreter, TRY(new_instance(interpreter, self)), std::move(args));
}

Result<Value> new_instance(Interpreter& interpreter, const std::shared_ptr<ClassObject>& class_object) {
  ObjectRef instance;
  for (ClassObject* each : class_object->resolution_order) {
    if (!each->allocate) continue;
    instance = TRY(each->allocate(interpreter, class_object));
    break;
  }
  if (!instance) instance = std::make_shared<InstanceObject>(class_object);
  interpreter.watch(instance);  // instances may refer to each other in a circle
  return Value(std::move(instance));
}

Result<Value> ClassObject::initialized(Interpreter& interpreter, Value instance, CallArgs args) {
  static const Name kInit("__init__");
  Value* init = lookup(kInit);
  if (!init) return instance;
  Value function = *init;
  args.positional.insert(args.positional.begin(), instance);
  if (!args.positional_spans.empty()) args.positional_spans.insert(args.positional_spans.begin(), args.span);
  Span span = args.span;
  Value result = TRY(interpreter.call(function, std::move(args)));
  if (!result.is_none()) return type_error(span, "__init__() should return None, not a value");
  return instance;
}

Result<Value> ClassObject::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  for (ClassObject* each : resolution_order) {
    Value* found = each->members.find(attribute);
    if (!found) continue;
    Value member = *found;
    if (auto* method = member.get_if<StaticMethod>()) return method->function;
    if (auto* method = member.get_if<ClassMethod>()) {
      return Value(std::make_shared<BoundMethod>(Value(shared_from_this()), method->function));
    }
    static const Name kGet("__get__");
    if (std::optional<Value> getter = descriptor_method(member, kGet))
      return interpreter.call(*getter, CallArgs{{Value(), Value(shared_from_this())}, {}, span, {}});
    return member;
  }
  if (attribute.text() == "__new__") return make_builtin("__new__", object_new);
  std::string_view text = attribute.text();
  if (text == "__name__" || text == "__qualname__" || text == "__bases__" || text == "__mro__" || text == "__dict__" ||
      text == "__class__") {
    return class_property(interpreter, *this, attribute);
  }
  Error error = no_attribute("type", attribute, span, member_names(*this));
  error->message = fmt::format("type object '{}' has no attribute '{}'", name.text(), attribute.text());
  return error;
}

Status ClassObject::set_attribute(Interpreter&, Name attribute, Value value, Span span) {
  if (!user_defined) {
    return type_error(span,
                      fmt::format("cannot set '{}' attribute of immutable type '{}'", attribute.text(), name.text()));
  }
  members.set(attribute, std::move(value));
  return {};
}

// `list[int]`, `Color["red"]`, `Base[T]`: an enum's member, or an annotation that means nothing.
Result<Value> ClassObject::get_item(Interpreter& interpreter, const Value& index, Span span) {
  static const Name kMembers("__members__"), kClassGetItem("__class_getitem__");
  if (Value* members = this->members.find(kMembers)) return interpreter.get_item(*members, index, span);
  if (Value* getter = lookup(kClassGetItem)) {
    Value function = *getter;
    if (auto* method = function.get_if<ClassMethod>()) function = Value(method->function);
    return interpreter.call(function, CallArgs{{Value(shared_from_this()), index}, {}, span, {}});
  }
  return Value(shared_from_this());
}

// `int | None` is the tuple of both, which isinstance() takes.
Result<std::optional<Value>> ClassObject::binary(Interpreter&, BinaryOp op, const Value& other, bool reflected, Span) {
  if (op != BinaryOp::bit_or) return std::optional<Value>();
  std::vector<Value> classes;
  if (auto* tuple = other.get_if<TupleObject>())
    classes = tuple->items;
  else
    classes = {other};
  classes.insert(reflected ? classes.end() : classes.begin(), Value(shared_from_this()));
  return std::optional<Value>(make_tuple(std::move(classes)));
}

Result<std::unique_ptr<Iterator>> ClassObject::iterate(Interpreter& interpreter, Span span) {
  if (iterate_class) return iterate_class(interpreter, span);
  return type_error(span, fmt::format("'type' object is not iterable: it is the class `{}`", name.text()));
}

Result<std::string> ClassObject::repr(Interpreter&) {
  static const Name kModule("__module__");
  const Value* module = members.find(kModule);
  if (!module || !module->if_string()) return fmt::format("<class '{}'>", name.text());
  return fmt::format("<class '{}.{}'>", *module->if_string(), name.text());
}

}  // namespace tilepilot::stage
