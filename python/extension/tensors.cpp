#include "python/extension/tensors.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <map>

#include "python/extension/errors.h"
#include "python/extension/python_object.h"
#include "python/extension/session.h"

namespace tilepilot::package {
namespace {

using stage::Value;

struct ElementType {
  const char* torch_name;
  ir::DType type;
  uint8_t code, bits;  // as DLPack numbers them
};
constexpr ElementType kElementTypes[] = {{"float32", ir::kFloat32, 2, 32},
                                         {"float16", ir::kFloat16, 2, 16},
                                         {"bfloat16", ir::kBFloat16, 4, 16},
                                         {"float64", ir::kFloat64, 2, 64},
                                         {"int32", ir::kInt32, 0, 32},
                                         {"int64", ir::kInt64, 0, 64},
                                         {"int16", ir::kInt16, 0, 16},
                                         {"int8", ir::kInt8, 0, 8},
                                         {"uint8", ir::kUInt8, 1, 8},
                                         {"uint16", ir::kUInt16, 1, 16},
                                         {"uint32", ir::kUInt32, 1, 32},
                                         {"uint64", ir::kUInt64, 1, 64},
                                         {"bool", ir::kBool, 6, 8},
                                         {"float8_e4m3fn", ir::kFloat8E4M3, 10, 8},
                                         {"float8_e5m2", ir::kFloat8E5M2, 12, 8},
                                         {"float8_e8m0fnu", ir::kFloat8E8M0, 14, 8}};
constexpr uint8_t kFloat4Code = 17;  // two to a byte

// The table of functions that DLPack 1.3 defines behind `__dlpack_c_exchange_api__`, up to the one that is used here.
struct ExchangeTable {
  uint32_t major, minor;
  const ExchangeTable* previous;
  void* allocate;
  void* managed_from_python;
  void* managed_to_python;
  int (*from_python)(void* object, nb::dlpack::dltensor* tensor);  // may be null
  void* current_stream;
};

// What is asked of torch once it is there.
struct Torch {
  nb::object tensor, parameter, empty, is_grad_enabled, count_modes, raw_stream;
  nb::object is_tracing, is_transforming, forward_gradients, count_write;
  nb::object requires_grad = nb::str("requires_grad"), is_negated = nb::str("is_neg"),
             size_names = nb::make_tuple("dtype", "device");
  std::map<PyObject*, const ElementType*> types;  // by torch.dtype
  nb::object dtypes[std::size(kElementTypes)];
  nb::object float4;  // null in old versions
  const ExchangeTable* exchange = nullptr;
};

const Torch* find_torch() {
  static Torch* torch = nullptr;
  if (torch != nullptr) return torch;
  const nb::object module = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  if (module.is_none() || !nb::hasattr(module, "Tensor") || !nb::hasattr(module, "is_grad_enabled")) return nullptr;
  auto made = std::make_unique<Torch>();
  made->tensor = module.attr("Tensor");
  made->parameter = module.attr("nn").attr("Parameter");
  made->empty = module.attr("empty");
  made->is_grad_enabled = module.attr("is_grad_enabled");
  made->count_modes = nb::getattr(module.attr("_C"), "_len_torch_dispatch_stack", nb::none());
  made->raw_stream = nb::getattr(module.attr("_C"), "_cuda_getCurrentRawStream", nb::none());
  made->is_tracing = nb::getattr(module.attr("_C"), "_is_tracing", nb::none());
  made->is_transforming = nb::getattr(module.attr("_C"), "_are_functorch_transforms_active", nb::none());
  made->forward_gradients = nb::getattr(module.attr("autograd"), "forward_ad", nb::none());
  made->count_write = module.attr("autograd").attr("graph").attr("increment_version");
  for (size_t k = 0; k < std::size(kElementTypes); ++k) {
    const nb::object dtype = nb::getattr(module, kElementTypes[k].torch_name, nb::none());
    if (dtype.is_none()) continue;
    made->dtypes[k] = dtype;
    made->types.emplace(dtype.ptr(), &kElementTypes[k]);
  }
  made->float4 = nb::getattr(module, "float4_e2m1fn_x2", nb::none());
  const nb::object capsule = nb::getattr(made->tensor, "__dlpack_c_exchange_api__", nb::none());
  if (!capsule.is_none()) {
    auto* table = static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    PyErr_Clear();
    if (table != nullptr && table->major == 1) made->exchange = table;
  }
  return torch = made.release();
}

Error not_for_kernels(const std::string& what, const std::string& hint = {}) {
  return make_error(DiagnosticKind::bad_kernel_argument, Session::get().span, what, hint);
}

const ElementType* element_type(const nb::dlpack::dtype& type) {
  for (const ElementType& row : kElementTypes)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return &row;
  return nullptr;
}

[[noreturn]] void refuse_device(nb::handle tensor) {
  const std::string device = nb::cast<std::string>(nb::str(nb::object(tensor.attr("device"))));
  raise(*not_for_kernels(
      fmt::format("a tensor is on `{}`, and kernels take tensors of the processor and of CUDA's GPUs", device),
      "call `.cpu()` or `.cuda()` on it first"));
}

void refuse_dtype(nb::handle tensor) {
  raise(*not_for_kernels(fmt::format("kernels take no tensors of `{}`",
                                     nb::cast<std::string>(nb::str(nb::object(tensor.attr("dtype")))))));
}

// The error that torch raised for a tensor without plain memory, as one of ours.
[[noreturn]] void refuse_unseen() {
  nb::python_error reason;
  const std::string text = nb::cast<std::string>(nb::str(nb::borrow(reason.value())));
  raise(DiagnosticKind::bad_kernel_argument,
        fmt::format("torch gives no access to the memory of a tensor: {}", text.substr(0, text.find('\n'))));
}

Location location_of(const nb::dlpack::device& device, nb::handle tensor) {
  switch (device.device_type) {
    case nb::device::cpu::value:
    case nb::device::cuda_host::value:
      return {};
    case nb::device::cuda::value:
    case nb::device::cuda_managed::value:
      return {true, device.device_id};
    default:
      refuse_device(tensor);
  }
}

std::shared_ptr<TensorValue> exchanged(const ExchangeTable& exchange, nb::handle tensor) {
  nb::dlpack::dltensor seen;
  if (exchange.from_python(tensor.ptr(), &seen) != 0) refuse_unseen();
  const Location location = location_of(seen.device, tensor);
  runtime::TensorView view;
  const bool is_float4 = seen.dtype.code == kFloat4Code;
  const ElementType* type = element_type(seen.dtype);
  if (type == nullptr && !is_float4) refuse_dtype(tensor);
  view.type = is_float4 ? ir::kUInt8 : type->type;
  view.data = static_cast<char*>(seen.data) + seen.byte_offset;
  view.shape.assign(seen.shape, seen.shape + seen.ndim);
  view.strides.assign(seen.strides, seen.strides + seen.ndim);
  return std::make_shared<TensorValue>(nb::borrow(tensor), std::move(view), location);
}

std::shared_ptr<TensorValue> by_attributes(const Torch& torch, nb::handle tensor) {
  const nb::object device = tensor.attr("device");
  const std::string kind = nb::cast<std::string>(device.attr("type"));
  if (kind != "cpu" && kind != "cuda") refuse_device(tensor);
  const Location location = kind == "cpu" ? Location() : Location{true, nb::cast<int>(device.attr("index"))};
  const nb::object dtype = tensor.attr("dtype");
  const auto type = torch.types.find(dtype.ptr());
  if (type == torch.types.end() && !dtype.is(torch.float4)) refuse_dtype(tensor);
  runtime::TensorView view;
  view.type = type == torch.types.end() ? ir::kUInt8 : type->second->type;
  view.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(tensor.attr("data_ptr")()));
  for (nb::handle extent : nb::iter(tensor.attr("shape"))) view.shape.push_back(nb::cast<int64_t>(extent));
  for (nb::handle stride : nb::iter(tensor.attr("stride")())) view.strides.push_back(nb::cast<int64_t>(stride));
  return std::make_shared<TensorValue>(nb::borrow(tensor), std::move(view), location);
}

bool is_plain(const Torch& torch, nb::handle object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()));
  return type == torch.tensor.ptr() || type == torch.parameter.ptr();
}

// A subclass may show other memory than what torch's own code finds in it.
std::shared_ptr<TensorValue> seen(const Torch& torch, nb::handle object) {
  const bool exchanges = torch.exchange != nullptr && torch.exchange->from_python != nullptr;
  return exchanges && is_plain(torch, object) ? exchanged(*torch.exchange, object) : by_attributes(torch, object);
}

class PythonTensors final : public stage::TensorHost {
 public:
  explicit PythonTensors(Location location) : location_(location), device_(to_string(location).c_str()) {}

  std::optional<runtime::TensorView> view(const Value& value) override {
    auto* tensor = value.get_if<TensorValue>();
    return tensor ? std::optional<runtime::TensorView>(tensor->view) : std::nullopt;
  }

  Result<Value> allocate(ir::DType type, const std::vector<int64_t>& shape, Span span) override {
    const Torch* torch = find_torch();
    if (torch == nullptr)
      return make_error(DiagnosticKind::not_installed, span, "outputs are tensors of torch, which is not imported",
                        "import torch first");
    std::vector<int64_t> held = shape;
    if (type.is_nibble() && !held.empty()) held.back() /= 2;
    try {
      const nb::object dtype = holder(*torch, type);
      if (dtype.is_valid() && !dtype.is_none()) return empty(*torch, dtype, held);
    } catch (nb::python_error& exception) { return error_of(exception, span); }
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("this version of torch has no tensors of `{}`", ir::to_string(type)));
  }

  const runtime::ParallelFor& parallel_for() override {
    static const runtime::ParallelFor kNone;
    return location_.on_gpu ? kNone : Session::get().parallel_for();
  }

  std::optional<ir::DType> dtype(const Value& value) override {
    const Torch* torch = find_torch();
    auto* object = value.get_if<PythonObject>();
    if (torch == nullptr || object == nullptr) return std::nullopt;
    const auto found = torch->types.find(object->object.ptr());
    return found == torch->types.end() ? std::nullopt : std::optional<ir::DType>(found->second->type);
  }

 private:
  const Location location_;
  const nb::str device_;

  // The torch.dtype of tensors that hold such elements.
  static nb::object holder(const Torch& torch, ir::DType type) {
    if (type == ir::kInt4) type = ir::kInt8;
    if (type == ir::kUInt4) type = ir::kUInt8;
    if (type == ir::kTensorFloat32) type = ir::kFloat32;
    if (type == ir::kFloat4E2M1) return torch.float4;
    for (size_t k = 0; k < std::size(kElementTypes); ++k)
      if (kElementTypes[k].type == type) return torch.dtypes[k];
    return nb::object();
  }

  Value empty(const Torch& torch, const nb::object& dtype, const std::vector<int64_t>& shape) const {
    const nb::object extents = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    for (size_t axis = 0; axis < shape.size(); ++axis)
      PyTuple_SET_ITEM(extents.ptr(), static_cast<Py_ssize_t>(axis), PyLong_FromLongLong(shape[axis]));
    PyObject* const arguments[] = {extents.ptr(), dtype.ptr(), device_.ptr()};
    PyObject* made = PyObject_Vectorcall(torch.empty.ptr(), arguments, 1, torch.size_names.ptr());
    if (made == nullptr) throw nb::python_error();
    return Value(seen(torch, nb::steal(made)));
  }
};

}  // namespace

std::string to_string(Location location) { return location.on_gpu ? fmt::format("cuda:{}", location.number) : "cpu"; }

Result<Value> TensorValue::get_attribute(stage::Interpreter& interpreter, stage::Name name, Span span) {
  return PythonObject(object).get_attribute(interpreter, name, span);
}

Result<std::string> TensorValue::repr(stage::Interpreter& interpreter) {
  return PythonObject(object).repr(interpreter);
}

bool is_plain_tensor(nb::handle object) {
  const Torch* torch = find_torch();
  return torch != nullptr && is_plain(*torch, object);
}

bool is_watched() {
  const Torch* torch = find_torch();
  if (torch == nullptr) return false;
  const auto says_yes = [](const nb::object& question) { return !question.is_none() && question().ptr() == Py_True; };
  if (!torch->count_modes.is_none() && nb::cast<int>(torch->count_modes()) > 0) return true;
  if (says_yes(torch->is_tracing) || says_yes(torch->is_transforming)) return true;
  return nb::cast<int>(nb::getattr(torch->forward_gradients, "_current_level", nb::int_(-1))) >= 0;
}

bool is_tensor(nb::handle object) {
  const Torch* torch = find_torch();
  return torch != nullptr && (is_plain(*torch, object) || PyObject_IsInstance(object.ptr(), torch->tensor.ptr()) == 1);
}

std::shared_ptr<TensorValue> tensor_value(nb::handle object) {
  const Torch* torch = find_torch();
  if (torch == nullptr) return nullptr;
  if (!is_plain(*torch, object) && PyObject_IsInstance(object.ptr(), torch->tensor.ptr()) != 1) return nullptr;
  const nb::object negated = nb::steal(PyObject_CallMethodNoArgs(object.ptr(), torch->is_negated.ptr()));
  if (!negated.is_valid()) throw nb::python_error();
  if (negated.ptr() == Py_True)
    raise(DiagnosticKind::bad_kernel_argument, "a tensor is the negative of what lies in its memory",
          "call `.resolve_neg()` on it first");
  return seen(*torch, object);
}

void count_write(const TensorValue& tensor) { find_torch()->count_write(tensor.object); }

namespace {
bool gradients_end = false;
}

void let_gradients_end() { gradients_end = true; }

void refuse_gradient(nb::handle tensor) {
  if (gradients_end) return;
  const Torch* torch = find_torch();
  const nb::object wants = nb::steal(PyObject_GetAttr(tensor.ptr(), torch->requires_grad.ptr()));
  if (!wants.is_valid()) throw nb::python_error();
  if (wants.ptr() != Py_True || torch->is_grad_enabled().ptr() != Py_True) return;
  raise(DiagnosticKind::bad_kernel_argument, "a tensor requires its gradient, and the kernel has no backward pass",
        "call it under `torch.no_grad()`, pass `.detach()`, or write a `torch.autograd.Function` around it");
}

void* current_stream(int gpu) {
  const Torch* torch = find_torch();
  if (torch == nullptr || torch->raw_stream.is_none())
    raise(DiagnosticKind::driver_missing, "this build of torch has no streams of CUDA", "install torch with CUDA");
  return reinterpret_cast<void*>(nb::cast<uintptr_t>(torch->raw_stream(gpu)));
}

std::unique_ptr<stage::TensorHost> make_tensor_host(Location location) {
  return std::make_unique<PythonTensors>(location);
}

}  // namespace tilepilot::package
