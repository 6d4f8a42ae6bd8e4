// Functions, bound methods, built-in functions and modules as objects; properties and super().
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/scope.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/descriptors.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

std::vector<std::pair<Name, Value>> FunctionObject::captured() const {
  std::vector<std::pair<Name, Value>> seen;
  for (size_t i = 0; i < closure.size(); ++i) {
    if (closure[i]->value) seen.emplace_back(layout->captured[i], *closure[i]->value);
  }
  for (Name each : layout->global_reads) {
    if (const Value* value = globals->members.find(each)) seen.emplace_back(each, *value);
  }
  return seen;
}

void FunctionObject::release() {
  for (CellRef& cell : closure) cell->value.reset();
  defaults.clear();
  attributes.clear();
}

namespace {

// What tools ask about a function's parameters.
Value code_of(const FunctionObject& function) {
  using Kind = syntax::Parameter::Kind;
  std::vector<Value> names, variadic;
  int64_t positional = 0, only_keyword = 0;
  for (const syntax::Parameter& parameter : *function.parameters) {
    const bool is_variadic = parameter.kind == Kind::var_positional || parameter.kind == Kind::var_keyword;
    (is_variadic ? variadic : names).emplace_back(parameter.name.text());
    only_keyword += parameter.kind == Kind::keyword_only;
    positional += !is_variadic && parameter.kind != Kind::keyword_only;
  }
  names.insert(names.end(), variadic.begin(), variadic.end());
  auto code = std::make_shared<ModuleObject>("code");
  code->set("co_name", Value(function.name.text()));
  code->set("co_argcount", Value(positional));
  code->set("co_kwonlyargcount", Value(only_keyword));
  code->set("co_varnames", make_tuple(std::move(names)));
  return Value(std::move(code));
}

}  // namespace

Result<Value> FunctionObject::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  if (Value* found = attributes.find(attribute)) return *found;
  std::string_view text = attribute.text();
  if (text == "__name__" || text == "__qualname__") return Value(name.text());
  if (text == "__module__") return Value(globals->name);
  if (text == "__doc__") return docstring();
  if (text == "__dict__") return make_dict();
  if (text == "__code__") return code_of(*this);
  if (text == "__wrapped__") return no_attribute(type_name(), attribute, span);
  if (text == "__defaults__") {
    std::vector<Value> values;
    for (const auto& each : defaults) {
      if (each) values.push_back(*each);
    }
    return values.empty() ? Value() : make_tuple(std::move(values));
  }
  if (text == "__annotations__") {
    auto dict = std::make_shared<DictObject>();
    for (size_t i = 0; i < annotations.size(); ++i) {
      if (!annotations[i]) continue;
      TRY(dict->table.set(interpreter, Value((*parameters)[i].name.text()), *annotations[i], span));
    }
    if (returns) TRY(dict->table.set(interpreter, Value("return"), *returns, span));
    return Value(std::move(dict));
  }
  return no_attribute(type_name(), attribute, span);
}

Value FunctionObject::docstring() const {
  if (!definition || definition->body.empty()) return Value();
  auto* first = std::get_if<syntax::ExprStmt>(&definition->body.front().node);
  auto* text = first ? std::get_if<syntax::StringLiteral>(&first->value->node) : nullptr;
  return text ? Value(text->value) : Value();
}

Status FunctionObject::set_attribute(Interpreter&, Name attribute, Value value, Span) {
  attributes.set(attribute, std::move(value));
  return {};
}

Result<std::string> FunctionObject::repr(Interpreter&) { return fmt::format("<function {}>", name.text()); }

Result<std::string> BuiltinFunction::repr(Interpreter&) { return fmt::format("<built-in function {}>", name); }

Result<Value> BuiltinFunction::get_attribute(Interpreter&, Name attribute, Span span) {
  if (attribute.text() == "__name__" || attribute.text() == "__qualname__") return Value(name);
  if (attribute.text() == "__doc__" || attribute.text() == "__module__") return Value();
  return no_attribute(type_name(), attribute, span);
}

Result<Value> BoundMethod::call(Interpreter& interpreter, CallArgs args) {
  args.positional.insert(args.positional.begin(), self);
  if (!args.positional_spans.empty()) args.positional_spans.insert(args.positional_spans.begin(), args.span);
  Value callee = function;
  return interpreter.call(callee, std::move(args));
}

Result<Value> BoundMethod::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "__self__") return self;
  if (name.text() == "__func__") return function;
  return interpreter.get_attribute(function, name, span);
}

Result<std::optional<Value>> BoundMethod::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                  Span span) {
  auto* method = other.get_if<BoundMethod>();
  if (!method || (op != CompareOp::eq && op != CompareOp::ne)) return std::optional<Value>();
  Value same_self = TRY(interpreter.compare(CompareOp::is, self, method->self, span));
  Value same_function = TRY(interpreter.compare(CompareOp::is, function, method->function, span));
  bool same = *same_self.if_bool() && *same_function.if_bool();
  return std::optional<Value>(Value(same == (op == CompareOp::eq)));
}

Result<size_t> BoundMethod::hash(Interpreter& interpreter, Span span) {
  return TRY(interpreter.hash(function, span)) * 31 + std::hash<const void*>()(self.if_object()->get());
}

void ModuleObject::function(std::string_view attribute, BuiltinFunction::Body body) {
  set(attribute, make_builtin(std::string(attribute), std::move(body)));
}

Result<Value> ModuleObject::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  if (Value* found = members.find(attribute)) return *found;
  if (missing) {
    if (std::optional<Value> found = TRY(missing(interpreter, attribute, span))) return *std::move(found);
  }
  static const Name kName("__name__"), kDict("__dict__");
  if (attribute == kName) return Value(name);
  if (attribute == kDict) {
    auto dict = std::make_shared<DictObject>();
    for (Name each : members.names()) TRY(dict->table.set(interpreter, Value(each.text()), *members.find(each), span));
    return Value(std::move(dict));
  }
  std::vector<std::string_view> known;
  for (Name each : members.names()) known.push_back(each.text());
  Error error = no_attribute(type_name(), attribute, span, known);
  error->message = fmt::format("module '{}' has no attribute '{}'", name, attribute.text());
  return error;
}

Status ModuleObject::set_attribute(Interpreter& interpreter, Name attribute, Value value, Span span) {
  if (changed) TRY(changed(interpreter, attribute, value, span));
  members.set(attribute, std::move(value));
  return {};
}

Result<std::string> ModuleObject::repr(Interpreter&) { return fmt::format("<module '{}'>", name); }

Result<Value> PropertyObject::get_attribute(Interpreter&, Name name, Span span) {
  static constexpr std::pair<std::string_view, Value PropertyObject::*> kRoles[] = {
      {"getter", &PropertyObject::getter}, {"setter", &PropertyObject::setter}, {"deleter", &PropertyObject::deleter}};
  auto self = std::static_pointer_cast<PropertyObject>(shared_from_this());
  if (name.text() == "fget") return getter;
  for (const auto& [role, member] : kRoles) {
    if (name.text() != role) continue;
    return make_builtin(name.str(), [self, member = member](Interpreter&, CallArgs& args) -> Result<Value> {
      static constexpr Signature kSignature{"setter", {"function"}, 1};
      Arguments read = TRY(Arguments::read(args, kSignature));
      auto made = std::make_shared<PropertyObject>(*self);
      made.get()->*member = *read[0];
      return Value(std::move(made));
    });
  }
  return no_attribute(type_name(), name, span, {"setter", "getter", "deleter"});
}

Result<Value> StaticMethod::call(Interpreter& interpreter, CallArgs args) {
  return interpreter.call(function, std::move(args));
}

Result<Value> bind_member(Interpreter& interpreter, const Value& member, const Value& instance,
                          const ClassObject& found_in, Span span) {
  auto* builtin = member.get_if<BuiltinFunction>();
  // A function behind functools.cache is a method too.
  const bool cached = member.type_name() == "functools._lru_cache_wrapper";
  if (member.get_if<FunctionObject>() || cached || (builtin && (builtin->is_method || !found_in.user_defined))) {
    return Value(std::make_shared<BoundMethod>(instance, member));
  }
  if (auto* property = member.get_if<PropertyObject>()) {
    return interpreter.call(property->getter, CallArgs{{instance}, {}, span, {}});
  }
  if (auto* method = member.get_if<StaticMethod>()) return method->function;
  if (auto* method = member.get_if<ClassMethod>()) {
    return Value(std::make_shared<BoundMethod>(Value(interpreter.class_of(instance)), method->function));
  }
  static const Name kGet("__get__");
  if (std::optional<Value> getter = descriptor_method(member, kGet))
    return interpreter.call(*getter, CallArgs{{instance, Value(interpreter.class_of(instance))}, {}, span, {}});
  return member;
}

std::optional<Value> descriptor_method(const Value& member, Name name) {
  InstanceObject* object = member.if_object() && *member.if_object() ? (*member.if_object())->as_instance() : nullptr;
  const Value* method = object ? object->class_object()->lookup(name) : nullptr;
  if (!method) return std::nullopt;
  return Value(std::make_shared<BoundMethod>(member, *method));
}

Result<Value> SuperObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  auto* own_class = self.get_if<ClassObject>();
  std::shared_ptr<ClassObject> start = own_class ? self.get_shared<ClassObject>() : interpreter.class_of(self);
  bool passed_owner = false;
  for (ClassObject* each : start->resolution_order) {
    if (passed_owner) {
      if (Value* member = each->members.find(name)) {
        Value found = *member;
        if (!own_class) return bind_member(interpreter, found, self, *each, span);
        if (auto* method = found.get_if<ClassMethod>()) {
          return Value(std::make_shared<BoundMethod>(self, method->function));
        }
        if (auto* method = found.get_if<StaticMethod>()) return method->function;
        return found;
      }
    }
    passed_owner = passed_owner || each == owner.get();
  }
  static const Name kNew("__new__");
  if (name == kNew) return interpreter.get_attribute(*interpreter.find_builtin("object"), kNew, span);
  return no_attribute(type_name(), name, span);
}

}  // namespace tilepilot::stage
