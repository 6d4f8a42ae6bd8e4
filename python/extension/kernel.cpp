#include "python/extension/kernel.h"

#include "compiler/ir/effects.h"
#include "compiler/ir/text.h"
#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/function_source.h"
#include "python/extension/session.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {
namespace {

using stage::Value;

// Calls are many: tensors and numbers first.
Value argument_value(nb::handle object) {
  if (is_plain_tensor(object)) {
    refuse_gradient(object);
    return Value(tensor_value(object));
  }
  if (PyLong_CheckExact(object.ptr()) || PyFloat_CheckExact(object.ptr()) || object.is_none()) return to_value(object);
  if (is_tensor(object)) throw NeedsDispatch();
  return to_value(object);
}

stage::CallArgs kernel_arguments(const nb::args& args, const nb::kwargs& kwargs) {
  if (is_recording()) throw NeedsDispatch();
  stage::CallArgs made;
  made.positional.reserve(args.size());
  for (nb::handle argument : args) made.positional.push_back(argument_value(argument));
  for (auto [name, value] : kwargs)
    made.keywords.emplace_back(stage::Name(nb::cast<std::string>(name)), argument_value(value));
  return made;
}

nb::object extent(const ir::Expr& expression) {
  const auto constant = ir::constant_int(expression);
  if (constant) return nb::int_(*constant);
  const std::string text = ir::to_text(expression);
  return nb::str(text.c_str());
}

bool writes(const ir::Program& program, const ir::Buffer& parameter) {
  for (const ir::Kernel& kernel : program.kernels)
    if (ir::memory_effects_of(kernel.body).writes.contains(parameter.get())) return true;
  return false;
}

Value member(const char* module, const char* name) {
  return *Session::get().interpreter().find_module(module)->members.find(stage::Name(name));
}

}  // namespace

void Kernel::compile() {
  if (launcher().is_compiled()) return;
  DiagnosticList warnings;
  Result<std::shared_ptr<runtime::CompiledKernel>> built = [&] {
    const NativeWork work;
    return launcher().build({}, warnings);
  }();
  launcher().adopt(value_of(std::move(built)), warnings);
  tell_warnings();
}

nb::object Kernel::run(const std::vector<Value>& inputs) {
  if (!launcher().is_compiled()) compile();
  Session::get().parallel_for();  // asks torch, and the launch goes without the GIL
  const auto kept = kernel_;
  return to_python(value_of(kept->launcher.run(inputs, {})));
}

nb::object Kernel::call(const nb::args& args, const nb::kwargs& kwargs) {
  stage::CallArgs arguments = kernel_arguments(args, kwargs);
  if (arguments.keywords.empty()) return run(arguments.positional);
  return run(value_of(launcher().arrange(arguments)));
}

nb::object Kernel::call_below_dispatch(const nb::args& args) {
  std::vector<Value> inputs;
  inputs.reserve(args.size());
  for (nb::handle argument : args) inputs.push_back(to_value(argument));
  return run(inputs);
}

std::string Kernel::source() {
  compile();
  return value_of(launcher().source({}));
}

nb::list Kernel::parameters() const {
  const ir::Program& program = launcher().program();
  nb::list all;
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    nb::dict row;
    const auto* buffer = std::get_if<ir::Buffer>(&program.parameters[i]);
    const ir::DType type = buffer ? (*buffer)->type : std::get<ir::Var>(program.parameters[i])->type;
    const std::string name = std::visit([](const auto& parameter) { return parameter->name; }, program.parameters[i]);
    row["name"] = name.c_str();
    row["dtype"] = ir::to_string(type).c_str();
    row["shape"] = nb::none();
    if (buffer) {
      nb::list shape;
      for (const ir::Expr& each : (*buffer)->shape) shape.append(extent(each));
      row["shape"] = shape;
    }
    row["output"] = launcher().is_output(i);
    row["written"] = buffer != nullptr && writes(program, *buffer);
    all.append(row);
  }
  return all;
}

nb::list Kernel::outputs() const {
  nb::list positions;
  for (const size_t position : launcher().outputs()) positions.append(position);
  return positions;
}

std::string Kernel::script() const { return ir::to_text(launcher().program()); }

JitFunction::JitFunction(nb::object function) {
  const SessionLock lock;
  auto made = value_of(decorated_function(function));
  stage::CallArgs args{{Value(made)}, {}, {}, {}};
  jit_ = value_of(Session::get().interpreter().call(member("tilelang", "jit"), std::move(args)))
             .get_shared<stage::JitFunctionObject>();
}

namespace {

// Of a call, with its tensors checked.
Result<stage::JitFunctionObject::Prepared> prepared(stage::JitFunctionObject& jit, const nb::args& args,
                                                    const nb::kwargs& kwargs) {
  const SessionLock lock;
  stage::CallArgs arguments = kernel_arguments(args, kwargs);
  arguments.span = jit.function().span;
  auto result = jit.prepare(Session::get().interpreter(), std::move(arguments));
  tell_warnings();
  return result;
}

}  // namespace

nb::object JitFunction::call(const nb::args& args, const nb::kwargs& kwargs) {
  stage::JitFunctionObject::Prepared call = value_of(prepared(*jit_, args, kwargs));
  Kernel kernel(call.kernel);
  return call.runs ? kernel.run(call.inputs) : nb::cast(kernel);
}

Kernel JitFunction::compile(const nb::args& args, const nb::kwargs& kwargs) {
  const SessionLock lock;
  stage::Interpreter& interpreter = Session::get().interpreter();
  stage::CallArgs arguments = to_arguments(args, kwargs, jit_->function().span);
  auto made = value_of(interpreter.call_method(Value(jit_), stage::Name("compile"), std::move(arguments), {}));
  tell_warnings();
  return Kernel(made.get_shared<stage::JitKernelObject>());
}

Kernel make_kernel(nb::handle program, nb::handle out_idx) {
  const SessionLock lock;
  stage::CallArgs args{{to_value(program), to_value(out_idx)}, {}, {}, {}};
  const Value made = value_of(Session::get().interpreter().call(member("tilelang", "compile"), std::move(args)));
  tell_warnings();
  return Kernel(made.get_shared<stage::JitKernelObject>());
}

}  // namespace tilepilot::package
