#include "python/extension/kernel.h"

#include <fmt/format.h>

#include <chrono>

#include "compiler/ir/effects.h"
#include "compiler/ir/text/text.h"
#include "compiler/runtime/cuda/cuda_kernel.h"
#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/function_source.h"
#include "python/extension/gpu.h"
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

stage::CallArgs arguments_by(Value (*converted)(nb::handle), const nb::args& args, const nb::kwargs& kwargs) {
  stage::CallArgs made;
  made.positional.reserve(args.size());
  for (nb::handle argument : args) made.positional.push_back(converted(argument));
  for (auto [name, value] : kwargs)
    made.keywords.emplace_back(stage::Name(nb::cast<std::string>(name)), converted(value));
  return made;
}

stage::CallArgs kernel_arguments(const nb::args& args, const nb::kwargs& kwargs) {
  if (is_watched()) throw NeedsDispatch();
  return arguments_by(argument_value, args, kwargs);
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

double seconds_of_compiling = 0;

// Lets other threads run meanwhile.
void compile(stage::Launcher& launcher) {
  if (launcher.is_compiled()) return;
  const auto begin = std::chrono::steady_clock::now();
  DiagnosticList warnings;
  Result<std::shared_ptr<runtime::CompiledKernel>> built = [&] {
    const NativeWork work;
    return launcher.build({}, warnings);
  }();
  seconds_of_compiling += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  launcher.adopt(value_of(std::move(built)), warnings);
  tell_warnings();
}

runtime::Target target_named(const std::string& name) {
  if (name == "cuda") return {runtime::Place::gpu, ""};
  runtime::Target target = value_of(runtime::parse_target(name));
  if (target.place == runtime::Place::emulator)
    raise(DiagnosticKind::bad_usage, "tensors of torch cannot be on the emulator",
          "the command `tilepilot run` has this target");
  return target;
}

std::string source_without_gpu(const ir::Program& program, const std::string& architecture) {
  const runtime::cuda::NvrtcOptions nvrtc = Gpus::nvrtc_options();
  DiagnosticList warnings;
  Result<std::string> made = [&] {
    const NativeWork work;
    return runtime::cuda::compile_without_device(program, architecture, nvrtc, warnings);
  }();
  for (const Diagnostic& warning : warnings.items()) Session::get().interpreter().diagnostics().add(warning);
  tell_warnings();
  return value_of(std::move(made));
}

}  // namespace

double compile_seconds() { return seconds_of_compiling; }

Kernel::Kernel(std::shared_ptr<stage::JitKernelObject> kernel, runtime::Target target)
    : state_(std::make_shared<State>(State{std::move(kernel), std::move(target), {}})) {}

Location Kernel::default_location() const {
  const runtime::Place place = state_->target.place;
  const bool on_gpu = place == runtime::Place::gpu || (place == runtime::Place::automatic && Gpus::is_available());
  return on_gpu ? Location{true, Gpus::current()} : Location();
}

std::string Kernel::device() const { return default_location().on_gpu ? "cuda" : "cpu"; }

std::string Kernel::target() const {
  const runtime::Target& target = state_->target;
  return target.place == runtime::Place::gpu && target.architecture.empty() ? "cuda" : runtime::to_string(target);
}

stage::Launcher& Kernel::on_gpu(int number, void* stream) const {
  if (program().workspaces.empty()) stream = nullptr;
  std::unique_ptr<stage::Launcher>& launcher = state_->on_gpus[{number, stream}];
  if (!launcher)
    launcher = std::make_unique<stage::Launcher>(Session::get().gpus().context(number, state_->target.architecture),
                                                 program(), on_processor().outputs());
  return *launcher;
}

std::string Kernel::source() {
  const Location location = default_location();
  if (!location.on_gpu) {
    package::compile(on_processor());
    return value_of(on_processor().source({}));
  }
  const std::string& architecture = state_->target.architecture;
  if (!architecture.empty() && !Gpus::is_available()) return source_without_gpu(program(), architecture);
  const auto kept = state_;
  const GpuTurn turn(location.number);
  stage::Launcher& launcher = on_gpu(location.number, nullptr);
  package::compile(launcher);
  return value_of(launcher.source({}));
}

std::string Kernel::input_name(size_t position) const {
  const auto& parameters = program().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (on_processor().is_output(i)) continue;
    if (position-- == 0)
      return std::visit([](const auto& parameter) { return std::string(parameter->name); }, parameters[i]);
  }
  return "one more argument";
}

void Kernel::check_location(const TensorValue& tensor, size_t position) const {
  const bool wants_gpu = state_->target.place == runtime::Place::gpu;
  if (state_->target.place == runtime::Place::automatic || tensor.location.on_gpu == wants_gpu) return;
  raise(DiagnosticKind::bad_kernel_argument,
        fmt::format("`{}` is on `{}`, and the kernel `{}` is compiled for the target `{}`", input_name(position),
                    to_string(tensor.location), name(), target()),
        wants_gpu ? "call `.cuda()` on it first" : "call `.cpu()` on it first, or leave `target` out");
}

// That of its tensors, which are together.
Location Kernel::location_of(const std::vector<Value>& inputs) const {
  const TensorValue* first = nullptr;
  size_t position_of_first = 0;
  for (size_t position = 0; position < inputs.size(); ++position) {
    const auto* tensor = inputs[position].get_if<TensorValue>();
    if (tensor == nullptr) continue;
    check_location(*tensor, position);
    if (first == nullptr) {
      first = tensor;
      position_of_first = position;
    } else if (tensor->location != first->location) {
      raise(DiagnosticKind::bad_kernel_argument,
            fmt::format("`{}` is on `{}`, and `{}` on `{}`", input_name(position), to_string(tensor->location),
                        input_name(position_of_first), to_string(first->location)),
            "the tensors of a call are on one device");
    }
  }
  return first == nullptr ? default_location() : first->location;
}

nb::object Kernel::run(const std::vector<Value>& inputs) {
  const auto kept = state_;
  const Location location = location_of(inputs);
  nb::object results = location.on_gpu ? run_on_gpu(location.number, inputs) : run_on_processor(inputs);
  for (const size_t position : written_inputs()) count_write(*inputs[position].get_if<TensorValue>());
  return results;
}

const std::vector<size_t>& Kernel::written_inputs() const {
  if (state_->written_inputs) return *state_->written_inputs;
  std::vector<size_t> found;
  const auto& parameters = program().parameters;
  for (size_t i = 0, position = 0; i < parameters.size(); ++i) {
    if (on_processor().is_output(i)) continue;
    const auto* buffer = std::get_if<ir::Buffer>(&parameters[i]);
    if (buffer != nullptr && writes(program(), *buffer)) found.push_back(position);
    ++position;
  }
  return state_->written_inputs.emplace(std::move(found));
}

nb::object Kernel::run_on_processor(const std::vector<Value>& inputs) const {
  package::compile(on_processor());
  Session::get().parallel_for();  // asks torch, and the launch goes without the GIL
  return to_python(value_of(on_processor().run(inputs, {})));
}

nb::object Kernel::run_on_gpu(int number, const std::vector<Value>& inputs) const {
  Session::get().gpus().check_usable();
  const GpuTurn turn(number);
  void* const stream = current_stream(number);
  stage::Launcher& launcher = on_gpu(number, stream);
  if (!launcher.is_compiled() && Gpus::is_capturing())
    raise(
        DiagnosticKind::device_failed,
        fmt::format("`{}` is called for the first time while a CUDA graph is captured, which cannot contain that it is "
                    "compiled and loaded",
                    name()),
        program().workspaces.empty() ? "call it once before" : "call it once before on the captured stream");
  package::compile(launcher);
  GpuTurn::send_to(stream);
  return to_python(value_of(launcher.run(inputs, {})));
}

nb::object Kernel::call(const nb::args& args, const nb::kwargs& kwargs) {
  stage::CallArgs arguments = kernel_arguments(args, kwargs);
  if (arguments.keywords.empty()) return run(arguments.positional);
  return run(value_of(on_processor().arrange(arguments)));
}

nb::object Kernel::call_below_dispatch(const nb::args& args) {
  std::vector<Value> inputs;
  inputs.reserve(args.size());
  for (nb::handle argument : args) inputs.push_back(to_value(argument));
  return run(inputs);
}

nb::list Kernel::parameters() const {
  const ir::Program& program = this->program();
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
    row["output"] = on_processor().is_output(i);
    row["written"] = buffer != nullptr && writes(program, *buffer);
    all.append(row);
  }
  return all;
}

nb::list Kernel::outputs() const {
  nb::list positions;
  for (const size_t position : on_processor().outputs()) positions.append(position);
  return positions;
}

std::string Kernel::script() const { return ir::to_text(program()); }

namespace {

// For `tilelang.jit` and `tilelang.compile`.
std::vector<std::pair<stage::Name, Value>> requests(bool fast_math) {
  if (!fast_math) return {};
  return {{stage::Name("compile_flags"), Value(std::string("--use_fast_math"))}};
}

}  // namespace

JitFunction::JitFunction(nb::object function, const std::string& target, bool fast_math)
    : target_(target_named(target)) {
  const SessionLock lock;
  auto made = value_of(decorated_function(function));
  stage::CallArgs args{{Value(made)}, requests(fast_math), {}, {}};
  jit_ = value_of(Session::get().interpreter().call(member("tilelang", "jit"), std::move(args)))
             .get_shared<stage::JitFunctionObject>();
}

namespace {

Result<stage::JitFunctionObject::Prepared> prepared(stage::JitFunctionObject& jit, stage::CallArgs arguments) {
  arguments.span = jit.function().span;
  auto result = jit.prepare(Session::get().interpreter(), std::move(arguments));
  tell_warnings();
  return result;
}

// Of a call, with its tensors checked.
Result<stage::JitFunctionObject::Prepared> prepared_call(stage::JitFunctionObject& jit, const nb::args& args,
                                                         const nb::kwargs& kwargs) {
  const SessionLock lock;
  return prepared(jit, kernel_arguments(args, kwargs));
}

// Of a call through the kernel's operator.
Result<stage::JitFunctionObject::Prepared> prepared_dispatch(stage::JitFunctionObject& jit, const nb::args& args,
                                                             const nb::kwargs& kwargs) {
  const SessionLock lock;
  return prepared(jit, arguments_by([](nb::handle object) { return to_value(object); }, args, kwargs));
}

}  // namespace

const Kernel& JitFunction::kernel_of(const std::shared_ptr<stage::JitKernelObject>& made) {
  return kernels_.try_emplace(made.get(), made, target_).first->second;
}

nb::object JitFunction::call(const nb::args& args, const nb::kwargs& kwargs) {
  stage::JitFunctionObject::Prepared call = value_of(prepared_call(*jit_, args, kwargs));
  Kernel kernel = kernel_of(call.kernel);
  return call.runs ? kernel.run(call.inputs) : nb::cast(kernel);
}

nb::object JitFunction::arrange(const nb::args& args, const nb::kwargs& kwargs) {
  stage::JitFunctionObject::Prepared call = value_of(prepared_dispatch(*jit_, args, kwargs));
  nb::object kernel = nb::cast(kernel_of(call.kernel));
  if (!call.runs) return kernel;
  nb::list inputs;
  for (const Value& input : call.inputs) inputs.append(to_python(input));
  return nb::make_tuple(kernel, inputs);
}

Kernel JitFunction::compile(const nb::args& args, const nb::kwargs& kwargs) {
  const SessionLock lock;
  stage::Interpreter& interpreter = Session::get().interpreter();
  stage::CallArgs arguments = to_arguments(args, kwargs, jit_->function().span);
  auto made = value_of(interpreter.call_method(Value(jit_), stage::Name("compile"), std::move(arguments), {}));
  tell_warnings();
  return kernel_of(made.get_shared<stage::JitKernelObject>());
}

Kernel make_kernel(nb::handle program, nb::handle out_idx, const std::string& target, bool fast_math) {
  const SessionLock lock;
  stage::CallArgs args{{to_value(program), to_value(out_idx)}, requests(fast_math), {}, {}};
  const Value made = value_of(Session::get().interpreter().call(member("tilelang", "compile"), std::move(args)));
  tell_warnings();
  return {made.get_shared<stage::JitKernelObject>(), target_named(target)};
}

}  // namespace tilepilot::package
