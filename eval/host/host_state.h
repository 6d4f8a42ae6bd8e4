// What one host room holds: its device, the Python objects that stand for dtypes and classes, and what has been
// resolved so far, so that a call costs table look-ups and no string work.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/runtime/cuda/driver.h"
#include "eval/host/arguments.h"
#include "eval/host/tensors/call_memory.h"
#include "eval/host/tensors/tensor_object.h"

namespace tilepilot::eval {

class Callable;
struct NativeClass;

struct DtypeObject final : stage::TypedObject<DtypeObject> {
  static constexpr stage::Type kType{"dtype"};
  DtypeObject(at::ScalarType scalar_, std::string name_) : scalar(scalar_), name(std::move(name_)) {}
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  Result<std::string> repr(stage::Interpreter&) override { return "torch." + name; }
  at::ScalarType scalar;
  std::string name;
};

struct DeviceObject final : stage::TypedObject<DeviceObject> {
  static constexpr stage::Type kType{"device"};
  explicit DeviceObject(at::Device device_) : device(device_) {}
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  Result<std::optional<stage::Value>> compare(stage::Interpreter&, stage::CompareOp op, const stage::Value& other,
                                              Span span) override;
  Result<size_t> hash(stage::Interpreter&, Span) override;
  // `with torch.device("cuda"):` chooses where new tensors live; there is one place.
  Result<stage::Value> enter(stage::Interpreter&, Span) override { return stage::Value(shared_from_this()); }
  Status exit(stage::Interpreter&, Span) override { return {}; }
  Result<std::string> repr(stage::Interpreter&) override { return "device(type='" + device.str() + "')"; }
  Result<std::string> str(stage::Interpreter&) override { return device.str(); }
  at::Device device;
};

// torch.strided, torch.contiguous_format: a constant of LibTorch with a name.
struct FormatObject final : stage::TypedObject<FormatObject> {
  static constexpr stage::Type kType{"format"};
  FormatObject(std::string name_, bool is_layout_, int64_t code_)
      : name(std::move(name_)), is_layout(is_layout_), code(code_) {}
  Result<std::optional<stage::Value>> compare(stage::Interpreter&, stage::CompareOp op, const stage::Value& other,
                                              Span span) override;
  Result<size_t> hash(stage::Interpreter&, Span) override { return std::hash<std::string>()(name); }
  Result<std::string> repr(stage::Interpreter&) override { return "torch." + name; }
  std::string name;
  bool is_layout;
  int64_t code;
};

struct GeneratorObject final : stage::TypedObject<GeneratorObject> {
  static constexpr stage::Type kType{"Generator"};
  explicit GeneratorObject(at::Generator generator_) : generator(std::move(generator_)) {}
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  at::Generator generator;
};

class HostState {
 public:
  explicit HostState(const TorchHostOptions& options);
  ~HostState();

  at::Device device() const { return device_; }
  void set_device(at::Device device) {
    device_ = device;
    call_memory_.reset();
    if (!device.is_cpu() && !is_script_) call_memory_.emplace();
  }
  // What the call under way has had of a GPU's memory; null: on a processor, and for scripts.
  CallMemory* call_memory() { return call_memory_ ? &*call_memory_ : nullptr; }
  // As torch.manual_seed; the generators of GPUs only where programs work on one: to ask for them wakes the driver.
  void seed(uint64_t seed) const;
  // From now on, tensors are noted as they are made; the noted ones that are still there.
  void note_tensors() { notes_tensors_ = true; }
  std::vector<at::Tensor> take_noted();
  // What programs see of it.
  at::Device shown_device() const { return shows_cuda_ ? at::Device(at::kCUDA, 0) : device_; }
  bool is_script() const { return is_script_; }
  const runtime::cuda::Device* gpu() const { return gpu_.get(); }
  // Where all tensors live: operators that are not told a device may make some that are elsewhere.
  at::Tensor placed(at::Tensor tensor) const {
    const bool is_there = device_.is_cpu() || !tensor.defined() || tensor.device().type() == device_.type();
    return is_there ? tensor : tensor.to(device_);
  }
  stage::Value wrap(at::Tensor tensor) {
    return noted(std::make_shared<TensorObject>(*this, placed(std::move(tensor))));
  }
  stage::Value wrap_parameter(at::Tensor tensor, bool requires_grad = true);
  stage::Value dtype(at::ScalarType type);
  const std::vector<std::pair<std::string, stage::Value>>& dtype_names() const { return dtype_names_; }

  // The function behind a name, resolved once: a row of the room's own tables if there is one, else the overloads of
  // `aten::name`. Null: there is none.
  const Callable* tensor_method(stage::Name name);
  const Callable* torch_function(stage::Name name);
  const Callable* functional(stage::Name name);
  const Callable* initializer(stage::Name name);
  const Callable* aten(const std::string& name);
  // The overload of an ATen operator ("" for the unnamed one), or null.
  std::shared_ptr<const Callable> aten_overload(const std::string& name, const std::string& overload);
  std::vector<std::string> method_names() const;

  stage::TensorHost& tensors() { return *tensors_; }
  // The classes nn.Module, torch.Tensor, ...: made by install.
  std::unordered_map<std::string, std::shared_ptr<stage::ClassObject>> classes;
  std::unordered_map<std::string, const NativeClass*> layers;  // what instances of native layers need, by class name
  // What makes a tuple a torch.Size; set by install.
  std::shared_ptr<const stage::TupleFields> size_fields;
  stage::Value size(std::vector<stage::Value> extents) const;
  stage::Value size(at::IntArrayRef extents) const {
    return size(std::vector<stage::Value>(extents.begin(), extents.end()));
  }
  // Types of Python that also name dtypes: float, int, bool. Filled by install.
  std::vector<std::pair<stage::ObjectRef, at::ScalarType>> python_types;

 private:
  std::shared_ptr<TensorObject> noted(std::shared_ptr<TensorObject> object) {
    if (notes_tensors_) noted_.push_back(object);
    if (call_memory_) call_memory_->note(object->tensor);
    return object;
  }

  using Cache = std::unordered_map<stage::Name, std::unique_ptr<Callable>, stage::NameHash>;
  // Where to look for a name that the table lacks: nowhere, among all operators, among those that can be methods.
  enum class Fallback { none, operators, methods };
  const Callable* resolve(Cache& cache, stage::Name name, FunctionTable table, Fallback fallback);

  std::optional<at::NoGradGuard> no_grad_;  // a candidate records no gradients
  at::Device device_;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  bool is_script_, shows_cuda_;
  bool notes_tensors_ = false;
  std::optional<CallMemory> call_memory_;
  std::vector<std::weak_ptr<TensorObject>> noted_;
  std::unordered_map<std::string, std::vector<std::string>> overloads_;  // "add" -> {"Tensor", "Scalar", ...}
  Cache methods_, torch_, functional_, initializers_, aten_;
  std::vector<std::pair<std::string, stage::Value>> dtype_names_;
  std::vector<stage::Value> dtypes_;  // by ScalarType
  std::unique_ptr<stage::TensorHost> tensors_;
};

// Adds what each file of the room contributes to the interpreter.
void install_torch_module(HostState& state, stage::Interpreter& interpreter);
void install_modules(HostState& state, stage::Interpreter& interpreter);
// What `torch` has for a script only; call it before anything else looks names up there.
void add_script_functions(HostState& state, stage::ModuleObject& torch);
std::unique_ptr<stage::TensorHost> make_tensor_host(HostState& state);

}  // namespace tilepilot::eval
