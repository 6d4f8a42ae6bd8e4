// Built-in functions on any object: isinstance, getattr, repr, print, hash, ...; and those that are refused.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/format_spec.h"

namespace tilepilot::stage {

namespace {

// Whether `candidate` derives from `wanted`: a class, a tuple of them, or an object that knows (`__instancecheck__`).
Result<bool> is_subclass(Interpreter& interpreter, const ClassObject& candidate, const Value& wanted, CallArgs& args) {
  if (auto* class_object = wanted.get_if<ClassObject>()) {
    // Native classes of hosts need not name `object` as a base.
    bool is_object = *wanted.if_object() == *interpreter.find_builtin("object")->if_object();
    return is_object || candidate.is_subclass_of(*class_object);
  }
  if (auto* tuple = wanted.get_if<TupleObject>()) {
    for (const Value& each : tuple->items) {
      if (TRY(is_subclass(interpreter, candidate, each, args))) return true;
    }
    return false;
  }
  if (wanted.is_none()) return candidate.name.text() == kNoneType.name;
  static const Name kCheck("__instancecheck__");
  auto check = interpreter.get_attribute(wanted, kCheck, args.span);
  if (check.ok()) {
    CallArgs one{{args.positional[0]}, {}, args.span, {}};
    return interpreter.truth(TRY(interpreter.call(*check, std::move(one))), args.span);
  }
  return type_error(args.span, "isinstance() arg 2 must be a type, a tuple of types, or a union");
}

Result<Value> isinstance(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"isinstance", {"object", "classinfo"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::shared_ptr<ClassObject> own = interpreter.class_of(*read[0]);
  return Value(TRY(is_subclass(interpreter, *own, *read[1], args)));
}

Result<Value> issubclass(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"issubclass", {"class", "classinfo"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* candidate = read[0]->get_if<ClassObject>();
  if (!candidate) return type_error(args.span, "issubclass() arg 1 must be a class");
  return Value(TRY(is_subclass(interpreter, *candidate, *read[1], args)));
}

Result<Value> get_attribute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"getattr", {"object", "name", "default"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto found = interpreter.get_attribute(*read[0], Name(TRY(read.text(1))), args.span);
  if (found.ok() || !read[2]) return found;
  if (is_raised(interpreter, found.error(), "AttributeError")) return *read[2];
  return found;
}

Result<Value> has_attribute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"hasattr", {"object", "name"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto found = interpreter.get_attribute(*read[0], Name(TRY(read.text(1))), args.span);
  if (found.ok()) return Value(true);
  if (is_raised(interpreter, found.error(), "AttributeError")) return Value(false);
  return std::move(found).take_error();
}

Result<Value> show_ascii(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"ascii", {"object"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(escape_beyond_ascii(TRY(interpreter.repr(*read[0]))));
}

Result<Value> set_attribute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"setattr", {"object", "name", "value"}, 3};
  Arguments read = TRY(Arguments::read(args, kSignature));
  TRY(interpreter.set_attribute(*read[0], Name(TRY(read.text(1))), *read[2], args.span));
  return Value();
}

Result<Value> delete_attribute(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"delattr", {"object", "name"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  TRY(interpreter.delete_attribute(*read[0], Name(TRY(read.text(1))), args.span));
  return Value();
}

Result<Value> is_callable(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"callable", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* object = read[0]->if_object();
  if (!object) return Value(false);
  if (InstanceObject* instance = (*object)->as_instance()) {
    return Value(instance->class_object()->lookup(Name("__call__")) != nullptr);
  }
  return Value((*object)->is_callable());
}

Result<Value> show(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"repr", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(TRY(interpreter.repr(*read[0])));
}

Result<Value> format(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"format", {"value", "format_spec"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(TRY(format_value(interpreter, *read[0], TRY(read.text(1)), args.span)));
}

Result<Value> print(Interpreter& interpreter, CallArgs& args) {
  const Value* separator = args.keyword("sep");
  const Value* end = args.keyword("end");
  std::string text;
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (i > 0) text += separator && separator->if_string() ? *separator->if_string() : " ";
    text += TRY(interpreter.str(args.positional[i]));
  }
  text += end && end->if_string() ? *end->if_string() : "\n";
  const Value* file = args.keyword("file");
  if (!file || file->is_none())
    interpreter.print(text);
  else
    TRY(interpreter.call_method(*file, Name("write"), CallArgs{{Value(text)}, {}, args.span, {}}, args.span));
  return Value();
}

Result<Value> hash(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"hash", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(static_cast<int64_t>(TRY(interpreter.hash(*read[0], args.span))));
}

Result<Value> identity(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"id", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (auto* object = read[0]->if_object())
    return Value(static_cast<int64_t>(reinterpret_cast<intptr_t>(object->get())));
  return Value(static_cast<int64_t>(TRY(interpreter.hash(*read[0], args.span))));
}

void add_names(std::vector<Value>& names, const Namespace& space) {
  for (Name name : space.names()) names.emplace_back(name.text());
}

Result<Value> list_names(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"dir", {"object"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value> names;
  InstanceObject* instance = read[0]->if_object() ? (*read[0]->if_object())->as_instance() : nullptr;
  if (instance) add_names(names, instance->attributes());
  if (auto* module = read[0]->get_if<ModuleObject>()) add_names(names, module->members);
  auto* own = read[0]->get_if<ClassObject>();
  std::shared_ptr<ClassObject> class_object = own ? read[0]->get_shared<ClassObject>() : interpreter.class_of(*read[0]);
  for (ClassObject* each : class_object->resolution_order) add_names(names, each->members);
  auto set = std::make_shared<SetObject>();
  for (Value& each : names) TRY(set->table.set(interpreter, std::move(each), None{}, args.span));
  CallArgs sorted{{Value(set)}, {}, args.span, {}};
  return interpreter.call(*interpreter.find_builtin("sorted"), std::move(sorted));
}

Result<Value> variables(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"vars", {"object"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return interpreter.get_attribute(*read[0], Name("__dict__"), args.span);
}

// Names that exist in Python and reach the system or the interpreter itself.
constexpr std::string_view kForbidden[] = {"open",    "exec",   "eval",  "compile",    "__import__",
                                           "globals", "locals", "input", "breakpoint", "memoryview"};

}  // namespace

void install_object_functions(Interpreter& interpreter) {
  const std::pair<std::string_view, Result<Value> (*)(Interpreter&, CallArgs&)> kFunctions[] = {
      {"isinstance", isinstance}, {"issubclass", issubclass},
      {"getattr", get_attribute}, {"hasattr", has_attribute},
      {"setattr", set_attribute}, {"delattr", delete_attribute},
      {"callable", is_callable},  {"repr", show},
      {"ascii", show_ascii},      {"format", format},
      {"print", print},           {"hash", hash},
      {"id", identity},           {"dir", list_names},
      {"vars", variables},
  };
  for (const auto& [name, body] : kFunctions) interpreter.set_builtin(name, make_builtin(std::string(name), body));
  for (std::string_view name : kForbidden) {
    auto refuse = [name](Interpreter&, CallArgs& args) -> Result<Value> {
      return make_error(DiagnosticKind::forbidden, args.span,
                        fmt::format("`{}` is not allowed: it reaches outside the program", name),
                        "compute from the arguments alone");
    };
    interpreter.set_builtin(name, make_builtin(std::string(name), refuse));
  }
  interpreter.set_builtin("__debug__", Value(true));
}

}  // namespace tilepilot::stage
