#include "compiler/stage/python/objects/exceptions.h"

#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

struct ExceptionClass {
  std::string_view name;
  std::string_view base;
};

constexpr ExceptionClass kExceptionClasses[] = {
    {"BaseException", ""},
    {"Exception", "BaseException"},
    {"GeneratorExit", "BaseException"},
    {"KeyboardInterrupt", "BaseException"},
    {"SystemExit", "BaseException"},
    {"ArithmeticError", "Exception"},
    {"OverflowError", "ArithmeticError"},
    {"ZeroDivisionError", "ArithmeticError"},
    {"FloatingPointError", "ArithmeticError"},
    {"AssertionError", "Exception"},
    {"AttributeError", "Exception"},
    {"BufferError", "Exception"},
    {"EOFError", "Exception"},
    {"ImportError", "Exception"},
    {"ModuleNotFoundError", "ImportError"},
    {"LookupError", "Exception"},
    {"IndexError", "LookupError"},
    {"KeyError", "LookupError"},
    {"MemoryError", "Exception"},
    {"NameError", "Exception"},
    {"UnboundLocalError", "NameError"},
    {"OSError", "Exception"},
    {"ConnectionError", "OSError"},
    {"FileNotFoundError", "OSError"},
    {"PermissionError", "OSError"},
    {"TimeoutError", "OSError"},
    {"RuntimeError", "Exception"},
    {"NotImplementedError", "RuntimeError"},
    {"RecursionError", "RuntimeError"},
    {"StopIteration", "Exception"},
    {"StopAsyncIteration", "Exception"},
    {"SyntaxError", "Exception"},
    {"TypeError", "Exception"},
    {"ValueError", "Exception"},
    {"UnicodeError", "ValueError"},
    {"UnicodeDecodeError", "UnicodeError"},
    {"UnicodeEncodeError", "UnicodeError"},
    {"Warning", "Exception"},
    {"UserWarning", "Warning"},
    {"DeprecationWarning", "Warning"},
    {"RuntimeWarning", "Warning"},
    {"FutureWarning", "Warning"},
};

struct KindClass {
  DiagnosticKind kind;
  std::string_view class_name;
};

constexpr KindClass kKindClasses[] = {
    {DiagnosticKind::unknown_name, "NameError"},
    {DiagnosticKind::unknown_attribute, "AttributeError"},
    {DiagnosticKind::unknown_module, "ModuleNotFoundError"},
    {DiagnosticKind::type_error, "TypeError"},
    {DiagnosticKind::wrong_arguments, "TypeError"},
    {DiagnosticKind::no_matching_overload, "TypeError"},
    {DiagnosticKind::value_error, "ValueError"},
    {DiagnosticKind::index_error, "IndexError"},
    {DiagnosticKind::key_error, "KeyError"},
    {DiagnosticKind::division_by_zero, "ZeroDivisionError"},
    {DiagnosticKind::integer_overflow, "OverflowError"},
    {DiagnosticKind::assertion_failed, "AssertionError"},
    {DiagnosticKind::out_of_memory, "MemoryError"},
    {DiagnosticKind::syntax_error, "SyntaxError"},
    {DiagnosticKind::unsupported_syntax, "SyntaxError"},
};

const Name& args_name() {
  static const Name kArgs("args");
  return kArgs;
}

std::vector<Value> arguments_of(InstanceObject& exception) {
  Value* args = exception.attributes().find(args_name());
  const std::vector<Value>* items = args ? sequence_items(*args) : nullptr;
  return items ? *items : std::vector<Value>();
}

// str() of an exception: its only argument, or all of them as a tuple; a KeyError shows its key quoted.
Result<Value> exception_text(Interpreter& interpreter, CallArgs& call) {
  InstanceObject* self = call.positional.empty() ? nullptr : (*call.positional[0].if_object())->as_instance();
  if (!self) return type_error(call.span, "__str__() needs an exception");
  std::vector<Value> args = arguments_of(*self);
  if (args.empty()) return Value("");
  if (args.size() > 1) return Value(TRY(interpreter.repr(make_tuple(args))));
  static const Name kKeyError("KeyError");
  for (ClassObject* each : self->class_object()->resolution_order) {
    if (each->name == kKeyError && !each->user_defined) return Value(TRY(interpreter.repr(args[0])));
  }
  return Value(TRY(interpreter.str(args[0])));
}

Result<Value> exception_repr(Interpreter& interpreter, CallArgs& call) {
  InstanceObject* self = call.positional.empty() ? nullptr : (*call.positional[0].if_object())->as_instance();
  if (!self) return type_error(call.span, "__repr__() needs an exception");
  std::string text = self->class_object()->name.str() + "(";
  std::vector<Value> args = arguments_of(*self);
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + TRY(interpreter.repr(args[i]));
  return Value(text + ")");
}

Result<Value> exception_init(Interpreter&, CallArgs& call) {
  InstanceObject* self = call.positional.empty() ? nullptr : (*call.positional[0].if_object())->as_instance();
  if (!self) return type_error(call.span, "__init__() needs an exception");
  self->attributes().set(args_name(), make_tuple({call.positional.begin() + 1, call.positional.end()}));
  return Value();
}

// SystemExit has a `code`: what it was made with, None if nothing.
Result<Value> system_exit_init(Interpreter& interpreter, CallArgs& call) {
  TRY(exception_init(interpreter, call));
  std::vector<Value> args(call.positional.begin() + 1, call.positional.end());
  Value code = args.empty() ? Value() : args.size() == 1 ? args.front() : make_tuple(std::move(args));
  (*call.positional[0].if_object())->as_instance()->attributes().set(Name("code"), std::move(code));
  return Value();
}

// StopIteration has a `value`: what a generator returned.
void set_stop_value(InstanceObject& exception) {
  std::vector<Value> args = arguments_of(exception);
  exception.attributes().set(Name("value"), args.empty() ? Value() : args.front());
}

Result<Value> stop_iteration_init(Interpreter& interpreter, CallArgs& call) {
  TRY(exception_init(interpreter, call));
  set_stop_value(*(*call.positional[0].if_object())->as_instance());
  return Value();
}

// `args` is there even if a derived class's __init__ does not call ours.
Result<ObjectRef> allocate_exception(Interpreter&, const std::shared_ptr<ClassObject>& class_object) {
  auto made = std::make_shared<InstanceObject>(class_object);
  made->attributes().set(args_name(), make_tuple({}));
  return ObjectRef(std::move(made));
}

}  // namespace

void install_exceptions(Interpreter& interpreter, Core& core) {
  for (const ExceptionClass& each : kExceptionClasses) {
    std::shared_ptr<ClassObject> base;
    if (!each.base.empty()) base = interpreter.find_builtin(each.base)->get_shared<ClassObject>();
    std::shared_ptr<ClassObject> made = core.add_class(each.name, nullptr, base);
    if (each.base.empty()) {
      made->allocate = allocate_exception;
      made->members.set(Name("__init__"), make_builtin("__init__", exception_init));
      made->members.set(Name("__str__"), make_builtin("__str__", exception_text));
      made->members.set(Name("__repr__"), make_builtin("__repr__", exception_repr));
    }
    if (each.name == "SystemExit") made->members.set(Name("__init__"), make_builtin("__init__", system_exit_init));
    if (each.name == "StopIteration")
      made->members.set(Name("__init__"), make_builtin("__init__", stop_iteration_init));
    interpreter.set_builtin(each.name, made);
  }
  interpreter.set_builtin("IOError", *interpreter.find_builtin("OSError"));
}

bool is_catchable(DiagnosticKind kind) {
  return kind != DiagnosticKind::step_limit && kind != DiagnosticKind::recursion_limit &&
         kind != DiagnosticKind::forbidden;
}

std::string_view exception_class_of(DiagnosticKind kind) {
  for (const KindClass& each : kKindClasses) {
    if (each.kind == kind) return each.class_name;
  }
  return "RuntimeError";
}

ObjectRef make_exception(Interpreter& interpreter, std::string_view class_name, std::vector<Value> args) {
  auto class_object = interpreter.find_builtin(class_name)->get_shared<ClassObject>();
  auto made = std::make_shared<InstanceObject>(std::move(class_object));
  made->attributes().set(args_name(), make_tuple(std::move(args)));
  if (class_name == "StopIteration") set_stop_value(*made);
  return made;
}

Value exception_of(Interpreter& interpreter, Diagnostic& error) {
  if (!error.thrown) error.thrown = make_exception(interpreter, exception_class_of(error.kind), {Value(error.message)});
  return Value(std::static_pointer_cast<Object>(error.thrown));
}

bool is_exception(Interpreter& interpreter, const Value& value) {
  auto* object = value.if_object();
  InstanceObject* instance = object ? (*object)->as_instance() : nullptr;
  auto* base = interpreter.find_builtin("BaseException")->get_if<ClassObject>();
  return instance && instance->class_object()->is_subclass_of(*base);
}

bool is_raised(Interpreter& interpreter, const Diagnostic& error, std::string_view class_name) {
  if (!error.thrown) return exception_class_of(error.kind) == class_name;
  Value exception(std::static_pointer_cast<Object>(error.thrown));
  auto* wanted = interpreter.find_builtin(class_name)->get_if<ClassObject>();
  return interpreter.class_of(exception)->is_subclass_of(*wanted);
}

Error error_of(Interpreter& interpreter, const Value& exception, Span span) {
  auto text = interpreter.str(exception);
  if (!text.ok()) return std::move(text).take_error();
  std::string message = fmt::format("`{}` raised", exception.type_name());
  if (!text->empty()) message += ": " + *text;
  Error error = make_error(DiagnosticKind::raised, span, std::move(message));
  error->thrown = *exception.if_object();
  return error;
}

Error Interpreter::raise(std::string_view exception_class, std::string message, Span span) {
  std::vector<Value> args;
  if (!message.empty()) args.emplace_back(message);
  Error error = make_error(DiagnosticKind::raised, span,
                           message.empty() ? fmt::format("`{}` raised", exception_class)
                                           : fmt::format("`{}` raised: {}", exception_class, message));
  error->thrown = make_exception(*this, exception_class, std::move(args));
  return error;
}

}  // namespace tilepilot::stage
