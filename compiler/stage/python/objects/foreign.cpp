#include "compiler/stage/python/objects/foreign.h"

#include <fmt/format.h>

#include "compiler/stage/python/objects/exceptions.h"

namespace tilepilot::stage {

namespace {

// As in Python, the attribute of a ModuleNotFoundError that holds the module's name.
const Name& module_attribute() {
  static const Name kName("name");
  return kName;
}

}  // namespace

Error ForeignObject::use(Interpreter& interpreter, Span span) const {
  const std::string reason = lacking_hint ? fmt::format("this `{}` has no such name", module)
                                          : fmt::format("the module `{}` is not available here", module);
  Error error = make_error(DiagnosticKind::unknown_module, span, fmt::format("`{}` cannot be used: {}", name, reason),
                           lacking_hint.value_or(""));
  error->note(imported, "imported here");
  ObjectRef exception = make_exception(interpreter, "ModuleNotFoundError", {Value(error->message)});
  exception->as_instance()->attributes().set(module_attribute(), Value(module));
  error->thrown = std::move(exception);
  return error;
}

Result<Value> ForeignObject::get_attribute(Interpreter&, Name attribute, Span) {
  const bool is_protocol = attribute.text().substr(0, 2) == "__";  // asked for by the evaluator, not by the program
  std::string inner = is_protocol ? name : fmt::format("{}.{}", name, attribute.text());
  return Value(std::make_shared<ForeignObject>(std::move(inner), module, imported, lacking_hint));
}

Result<std::string> ForeignObject::repr(Interpreter&) { return fmt::format("<{}, not available>", name); }

Result<std::optional<Value>> ForeignObject::binary(Interpreter& interpreter, BinaryOp op, const Value&, bool,
                                                   Span span) {
  if (op == BinaryOp::bit_or) return std::optional<Value>(Value(shared_from_this()));  // of types, in annotations
  return use(interpreter, span);
}

Result<std::optional<Value>> ForeignObject::compare(Interpreter& interpreter, CompareOp op, const Value&, Span span) {
  if (op == CompareOp::eq || op == CompareOp::ne) return std::optional<Value>();
  return use(interpreter, span);
}

std::shared_ptr<ModuleObject> make_foreign_module(const std::string& name, Span imported) {
  auto module = std::make_shared<ModuleObject>(name);
  module->missing = [name, imported](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    return std::optional<Value>(
        std::make_shared<ForeignObject>(fmt::format("{}.{}", name, attribute.text()), name, imported));
  };
  return module;
}

bool is_foreign_module(Interpreter& interpreter, const ModuleObject& module) {
  if (!module.missing) return false;
  auto any = module.missing(interpreter, module_attribute(), Span{});
  return any.ok() && *any && (*any)->get_if<ForeignObject>();
}

std::shared_ptr<ForeignObject> stand_in_for(Name definition, const Diagnostic& error) {
  if (error.kind != DiagnosticKind::unknown_module || !error.thrown || error.notes.empty()) return nullptr;
  auto exception = std::static_pointer_cast<Object>(error.thrown);
  InstanceObject* instance = exception->as_instance();
  const Value* module = instance ? instance->attributes().find(module_attribute()) : nullptr;
  if (!module || !module->if_string()) return nullptr;
  return std::make_shared<ForeignObject>(definition.str(), *module->if_string(), error.notes.front().span);
}

}  // namespace tilepilot::stage
