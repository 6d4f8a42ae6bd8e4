#include "eval/host/tensors/tensor_methods.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "eval/host/autograd.h"
#include "eval/host/callable.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"
#include "eval/host/tensors/indexing.h"

namespace tilepilot::eval {

using c10::IValue;
using stage::CallArgs;
using stage::Interpreter;
using stage::Name;
using stage::Value;

namespace {

Value number(const at::Scalar& scalar) {
  if (scalar.isBoolean()) return scalar.toBool();
  return scalar.isFloatingPoint() ? Value(scalar.toDouble()) : Value(scalar.toLong());
}

// The one argument of a method that takes a dimension or none.
Result<std::optional<int64_t>> dimension_argument(std::string_view method, const CallArgs& args) {
  const Value* given = args.positional.empty() ? args.keyword("dim") : &args.positional[0];
  if (!given || given->is_none()) return std::optional<int64_t>();
  if (auto dim = given->as_index()) return dim;
  return make_error(DiagnosticKind::wrong_arguments, args.span, fmt::format("`{}` takes an integer dimension", method));
}

Result<Value> extent(at::IntArrayRef values, int64_t dim, const CallArgs& args) {
  auto rank = static_cast<int64_t>(values.size());
  if (dim < -rank || dim >= rank) {
    return make_error(DiagnosticKind::index_error, args.span,
                      fmt::format("dimension {} is outside a tensor of {} dimensions", dim, rank));
  }
  return Value(values[static_cast<size_t>(dim < 0 ? dim + rank : dim)]);
}

Result<Value> size(HostState& state, Interpreter&, TensorObject& self, CallArgs& args) {
  auto dim = TRY(dimension_argument("size", args));
  return dim ? extent(self.tensor.sizes(), *dim, args) : state.size(self.tensor.sizes());
}

Result<Value> stride(HostState&, Interpreter&, TensorObject& self, CallArgs& args) {
  auto dim = TRY(dimension_argument("stride", args));
  at::IntArrayRef strides = self.tensor.strides();
  return dim ? extent(strides, *dim, args) : stage::make_tuple(std::vector<Value>(strides.begin(), strides.end()));
}

Value nested_list(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return number(tensor.item());
  std::vector<Value> items;
  for (int64_t i = 0; i < tensor.size(0); ++i) items.push_back(nested_list(tensor[i]));
  return stage::make_list(std::move(items));
}

Result<Value> tolist(HostState&, Interpreter&, TensorObject& self, CallArgs& args) {
  return guarded("tolist", args.span, [&] { return nested_list(self.tensor.cpu()); });
}

Result<Value> type(HostState& state, Interpreter&, TensorObject& self, CallArgs& args) {
  if (args.positional.empty() && args.keywords.empty()) {
    return Value("torch." + std::string(c10::toString(self.tensor.scalar_type())) + "Tensor");
  }
  static const Name kTo("to");
  for (auto& [name, value] : args.keywords) {
    if (name.text() == "dtype") args.positional.push_back(value);
  }
  args.keywords.clear();
  Value value(self.shared_from_this());
  return state.tensor_method(kTo)->call(state, &value, args);
}

Result<Value> requires_grad(HostState&, Interpreter&, TensorObject& self, CallArgs& args) {
  const Value* given = args.positional.empty() ? args.keyword("requires_grad") : &args.positional[0];
  bool wanted = !given || !given->if_bool() || *given->if_bool();
  TRY(guarded("requires_grad_", args.span, [&] { self.tensor.set_requires_grad(wanted); }));
  return Value(self.shared_from_this());
}

Result<Value> format(HostState&, Interpreter& interpreter, TensorObject& self, CallArgs& args) {
  if (self.tensor.dim() != 0 || args.positional.empty()) return Value(TRY(self.repr(interpreter)));
  Value item = TRY(guarded("item", args.span, [&] { return number(self.tensor.item()); }));
  Value* builtin = interpreter.find_builtin("format");
  if (!builtin) return Value(TRY(interpreter.str(item)));
  CallArgs inner;
  inner.positional = {item, args.positional[0]};
  inner.span = args.span;
  return interpreter.call(*builtin, std::move(inner));
}

Result<Value> new_tensor(HostState& state, Interpreter& interpreter, TensorObject& self, CallArgs& args) {
  if (args.positional.size() != 1) {
    return make_error(DiagnosticKind::wrong_arguments, args.span, "`new_tensor` takes the data");
  }
  auto type = self.tensor.scalar_type();
  if (auto* given = args.keyword("dtype")) {
    if (auto* dtype = given->get_if<DtypeObject>()) type = dtype->scalar;
  }
  Value data = args.positional[0];
  if (data.type_name() == "range") data = stage::make_list(TRY(interpreter.to_vector(data, args.span)));
  return state.wrap(TRY(tensor_from_data(data, type, args.span)).to(self.tensor.device()));
}

Result<Value> deep_copy(HostState& state, Interpreter&, TensorObject& self, CallArgs& args) {
  at::NoGradGuard values_only;
  const bool recorded = self.tensor.requires_grad();
  at::Tensor copy = TRY(guarded("deepcopy", args.span, [&] { return self.tensor.detach().clone(); }));
  if (self.is_parameter) return state.wrap_parameter(std::move(copy), recorded);
  return state.wrap(copy.set_requires_grad(recorded));
}

Error no_gradients(Span span) {
  return make_error(DiagnosticKind::forbidden, span, "gradients are not available: programs run forward only");
}

Result<Value> backward(HostState& state, Interpreter&, TensorObject& self, CallArgs& args) {
  if (!state.is_script()) return no_gradients(args.span);
  return run_backward(state, self, args);
}

Result<Value> retain_grad(HostState& state, Interpreter&, TensorObject& self, CallArgs& args) {
  if (!state.is_script()) return no_gradients(args.span);
  TRY(guarded("retain_grad", args.span, [&] { self.tensor.retain_grad(); }));
  return Value();
}

Result<Value> register_hook(HostState& state, Interpreter&, TensorObject&, CallArgs& args) {
  if (!state.is_script()) return no_gradients(args.span);
  return make_error(DiagnosticKind::unknown_attribute, args.span, "hooks of tensors are not supported");
}

Result<Value> no_memory(HostState&, Interpreter&, TensorObject&, CallArgs& args) {
  return make_error(DiagnosticKind::forbidden, args.span, "a tensor's memory cannot leave the program",
                    "use tensor operations or a kernel");
}

// For pointer tables of scripts.
Result<Value> data_ptr(HostState& state, Interpreter& interpreter, TensorObject& self, CallArgs& args) {
  if (!state.is_script()) return no_memory(state, interpreter, self, args);
  return Value(static_cast<int64_t>(reinterpret_cast<intptr_t>(self.tensor.data_ptr())));
}

// An array of modules/numpy.py, which holds the tensor itself.
Result<Value> numpy(HostState& state, Interpreter& interpreter, TensorObject& self, CallArgs& args) {
  if (!state.is_script()) return no_memory(state, interpreter, self, args);
  if (self.tensor.requires_grad()) {
    return make_error(DiagnosticKind::tensor_operation_failed, args.span,
                      "a tensor that requires gradients has no `numpy()`", "write `.detach().numpy()`");
  }
  auto module = TRY(interpreter.importer()->find(interpreter, "numpy", args.span));
  Value make = TRY(module->get_attribute(interpreter, Name("ndarray"), args.span));
  return interpreter.call(make, CallArgs{{Value(self.shared_from_this())}, {}, args.span, {}});
}

}  // namespace

const TensorMethod* find_tensor_method(Name name) {
  static const std::unordered_map<Name, TensorMethod, stage::NameHash> kMethods = {
      {Name("size"), size},
      {Name("stride"), stride},
      {Name("tolist"), tolist},
      {Name("type"), type},
      {Name("requires_grad_"), requires_grad},
      {Name("new_tensor"), new_tensor},
      {Name("__format__"), format},
      {Name("__deepcopy__"), deep_copy},
      {Name("backward"), backward},
      {Name("register_hook"), register_hook},
      {Name("retain_grad"), retain_grad},
      {Name("numpy"), numpy},
      {Name("data_ptr"), data_ptr},
      {Name("storage"), no_memory},
      {Name("untyped_storage"), no_memory},
      {Name("__array__"), no_memory},
      {Name("share_memory_"), no_memory},
  };
  auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : &found->second;
}

namespace {

IValue convert(const Arguments& a, at::ScalarType type) {
  return a.tensor("self").to(type, false, false, a.memory_format("memory_format"));
}

IValue to_device_and_type(const Arguments& a) {
  at::Tensor self = a.tensor("self");
  auto device = a["device"].toOptional<at::Device>().value_or(self.device());
  return self.to(device, a.dtype("dtype").value_or(self.scalar_type()), a.flag("non_blocking"), a.flag("copy"),
                 a.memory_format("memory_format"));
}

IValue same_device(const Arguments& a) { return a.tensor("self"); }

IValue norm(const Arguments& a) {
  std::vector<int64_t> dims = a.integers("dim");
  c10::OptionalArrayRef<int64_t> dim;
  if (a.given("dim")) dim = dims;
  at::Scalar order = a["p"].isScalar() ? a.scalar("p") : at::Scalar(2);
  return at::linalg_vector_norm(a.tensor("input"), order, dim, a.flag("keepdim"), a.dtype("dtype"));
}

IValue nonzero_elements(const Arguments& a) {
  if (!a.flag("as_tuple")) return at::nonzero(a.tensor("input"));
  std::vector<IValue> indices;
  for (at::Tensor& each : at::nonzero_numpy(a.tensor("input"))) indices.emplace_back(std::move(each));
  return c10::ivalue::Tuple::create(std::move(indices));
}

IValue frobenius_norm(const Arguments& a) {
  TORCH_CHECK(a["p"].isNone() || a.text("p") == "fro", "norm of order '", a.text("p"), "' is not supported");
  return norm(a);
}

#define TP_CONVERSION(name, type)                                     \
  {                                                                   \
    name "(Tensor self, *, MemoryFormat? memory_format=None)",        \
        [](const Arguments& a) -> IValue { return convert(a, type); } \
  }

const FunctionRow kMethodRows[] = {
    {"to(Tensor self, Device? device=None, ScalarType? dtype=None, bool non_blocking=False, bool copy=False, *, "
     "MemoryFormat? memory_format=None)",
     to_device_and_type},
    {"to(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, *, Device? device=None, "
     "MemoryFormat? memory_format=None)",
     to_device_and_type},
    {"to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None)",
     [](const Arguments& a) -> IValue {
       return a.tensor("self").to(a.tensor("other"), a.flag("non_blocking"), a.flag("copy"));
     }},
    TP_CONVERSION("float", at::kFloat),
    TP_CONVERSION("double", at::kDouble),
    TP_CONVERSION("half", at::kHalf),
    TP_CONVERSION("bfloat16", at::kBFloat16),
    TP_CONVERSION("long", at::kLong),
    TP_CONVERSION("int", at::kInt),
    TP_CONVERSION("short", at::kShort),
    TP_CONVERSION("char", at::kChar),
    TP_CONVERSION("byte", at::kByte),
    TP_CONVERSION("bool", at::kBool),
    {"cuda(Tensor self, Device? device=None, bool non_blocking=False, *, MemoryFormat? memory_format=None)",
     same_device},
    {"cpu(Tensor self, *, MemoryFormat? memory_format=None)", same_device},
    {"pin_memory(Tensor self)", same_device},
    {"dim(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").dim(); }},
    {"ndimension(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").dim(); }},
    {"numel(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").numel(); }},
    {"nelement(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").numel(); }},
    {"element_size(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").element_size(); }},
    {"storage_offset(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").storage_offset(); }},
    {"item(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").item(); }},
    {"__int__(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").item().toLong(); }},
    {"__index__(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").item().toLong(); }},
    {"__float__(Tensor self)", [](const Arguments& a) -> IValue { return a.tensor("self").item().toDouble(); }},
    {"__bool__(Tensor self)", [](const Arguments& a) -> IValue { return at::is_nonzero(a.tensor("self")); }},
    {"__abs__(Tensor self)", nullptr, "abs"},
    {"__round__(Tensor self)", nullptr, "round"},
    {"is_contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format)",
     [](const Arguments& a) -> IValue {
       return a.tensor("self").is_contiguous(static_cast<at::MemoryFormat>(a.integer("memory_format")));
     }},
    {"contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format)", nullptr, "contiguous"},
    {"norm(Tensor input, Scalar p, int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None)", norm},
    {"norm(Tensor input, str? p='fro', int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None)", frobenius_norm},
    {"where(Tensor self, Tensor condition, Tensor other)",
     [](const Arguments& a) -> IValue {
       return at::where(a.tensor("condition"), a.tensor("self"), a.tensor("other"));
     }},
    {"where(Tensor self, Tensor condition, Scalar other)",
     [](const Arguments& a) -> IValue {
       return at::where(a.tensor("condition"), a.tensor("self"), a.scalar("other"));
     }},
    {"repeat(Tensor self, int[] repeats)", nullptr, "repeat"},
    {"nonzero(Tensor input, *, bool as_tuple=False)", nonzero_elements},
};
#undef TP_CONVERSION

}  // namespace

FunctionTable tensor_method_table() { return kMethodRows; }

}  // namespace tilepilot::eval
