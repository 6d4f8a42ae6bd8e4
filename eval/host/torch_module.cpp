// The module `torch`: constants, dtypes and devices, functions that take Python values, what candidates may not use,
// and every other name through ATen.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <limits>

#include "compiler/stage/python/objects/native.h"
#include "eval/host/autograd.h"
#include "eval/host/callable.h"
#include "eval/host/edge.h"
#include "eval/host/embedded_python.h"
#include "eval/host/host_state.h"
#include "eval/host/namespaces.h"
#include "eval/host/tensors/indexing.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::ModuleObject;
using stage::Name;
using stage::Value;

namespace {

// torch.no_grad, enable_grad, inference_mode: a context and a decorator that change nothing, since nothing records
// gradients here; and other switches that are off.
struct GradMode final : stage::TypedObject<GradMode> {
  static constexpr stage::Type kType{"no_grad"};
  Result<Value> call(Interpreter&, CallArgs args) override {
    return args.positional.empty() ? Value(shared_from_this()) : args.positional[0];
  }
  Result<Value> enter(Interpreter&, Span) override { return Value(shared_from_this()); }
  Status exit(Interpreter&, Span) override { return {}; }
};

Result<Value> grad_mode(HostState&, Interpreter&, CallArgs& args) {
  bool decorates = args.positional.size() == 1 && args.positional[0].if_object();
  if (decorates) return args.positional[0];
  return Value(std::make_shared<GradMode>());
}

// torch.autocast that is switched off; types never change by themselves here.
Result<Value> autocast(HostState&, Interpreter&, CallArgs& args) {
  const Value* enabled = args.keyword("enabled");
  for (const Value& each : args.positional) enabled = each.if_bool() ? &each : enabled;
  if (enabled && enabled->if_bool() && !*enabled->if_bool()) return Value(std::make_shared<GradMode>());
  return make_error(DiagnosticKind::tensor_operation_failed, args.span, "`autocast` is not supported",
                    "convert with `.to(dtype)` where a type should change");
}

// A device that is made the current one: there is no other.
Result<Value> on_device(HostState&, Interpreter&, CallArgs&) { return Value(std::make_shared<GradMode>()); }

std::optional<at::ScalarType> dtype_of(HostState& state, const Value* value) {
  static const Parameter kDtype = [] {
    Parameter parameter;
    parameter.kind = ParameterKind::dtype;
    return parameter;
  }();
  auto converted = value ? to_argument(state, kDtype, *value, {}) : std::nullopt;
  return converted ? std::optional(static_cast<at::ScalarType>(converted->toInt())) : std::nullopt;
}

// torch.tensor and torch.as_tensor.
Result<Value> tensor(HostState& state, Interpreter& interpreter, CallArgs& args) {
  const Value* data = args.positional.empty() ? args.keyword("data") : &args.positional[0];
  const Value* type = args.positional.size() > 1 ? &args.positional[1] : args.keyword("dtype");
  if (!data) return make_error(DiagnosticKind::wrong_arguments, args.span, "`torch.tensor` takes the data");
  auto dtype = dtype_of(state, type);
  Value array = TRY(array_tensor(interpreter, *data));
  if (const at::Tensor* given = tensor_of(array.is_none() ? *data : array)) {
    return TRY(guarded("torch.tensor", args.span, [&] {
      return state.wrap(given->detach().to(dtype.value_or(given->scalar_type()), false, true));
    }));
  }
  Value numbers = *data;
  if (numbers.type_name() == "range") numbers = stage::make_list(TRY(interpreter.to_vector(numbers, args.span)));
  at::Tensor made = TRY(tensor_from_data(numbers, dtype, args.span)).to(state.device());
  const Value* recorded = args.keyword("requires_grad");
  if (recorded && recorded->if_bool() && *recorded->if_bool()) {
    TRY(guarded("torch.tensor", args.span, [&] { made.set_requires_grad(true); }));
  }
  return state.wrap(std::move(made));
}

// torch.Tensor(2, 3) and torch.Tensor([1, 2]).
Result<Value> make_tensor(HostState& state, CallArgs& args) {
  bool sizes = !args.positional.empty();
  std::vector<int64_t> shape;
  for (const Value& value : args.positional) {
    sizes &= value.if_int() != nullptr;
    if (sizes) shape.push_back(*value.if_int());
  }
  if (sizes || args.positional.empty()) {
    if (args.positional.empty()) shape = {0};
    return TRY(
        guarded("torch.Tensor", args.span, [&] { return state.wrap(at::empty(shape, at::device(state.device()))); }));
  }
  return state.wrap(TRY(tensor_from_data(args.positional[0], c10::get_default_dtype_as_scalartype(), args.span)));
}

// Functions that take any number of tensors, or one list of them; `leading` arguments come first.
struct VariadicRow {
  const char* name;
  size_t leading;
};
constexpr VariadicRow kVariadic[] = {{"einsum", 1},     {"meshgrid", 0},       {"broadcast_tensors", 0},
                                     {"block_diag", 0}, {"cartesian_prod", 0}, {"atleast_1d", 0},
                                     {"atleast_2d", 0}, {"atleast_3d", 0}};

Result<Value> call_variadic(HostState& state, const VariadicRow& row, CallArgs& args) {
  const Callable* callable = state.aten(row.name);
  std::vector<Value> tensors;
  for (size_t i = row.leading; i < args.positional.size(); ++i) tensors.push_back(args.positional[i]);
  args.positional.resize(std::min(row.leading, args.positional.size()));
  args.positional_spans.clear();
  bool listed = tensors.size() == 1 && stage::sequence_items(tensors[0]);
  bool alone = tensors.size() == 1 && !listed && std::string_view(row.name).substr(0, 7) == "atleast";
  args.positional.push_back(listed || alone ? tensors[0] : stage::make_list(std::move(tensors)));
  return callable->call(state, nullptr, args);
}

Result<Value> manual_seed(HostState& state, Interpreter&, CallArgs& args) {
  auto seed = args.positional.size() == 1 ? args.positional[0].as_index() : std::nullopt;
  if (!seed) return make_error(DiagnosticKind::wrong_arguments, args.span, "`torch.manual_seed` takes one integer");
  state.seed(static_cast<uint64_t>(*seed));
  return Value(std::make_shared<GeneratorObject>(at::globalContext().defaultGenerator(state.device())));
}

Result<Value> generator(HostState& state, Interpreter&, CallArgs&) {
  return Value(std::make_shared<GeneratorObject>(at::globalContext().defaultGenerator(state.device()).clone()));
}

Result<Value> device(HostState& state, Interpreter&, CallArgs&) {
  return Value(std::make_shared<DeviceObject>(state.shown_device()));
}

Result<Value> make_size(HostState& state, Interpreter& interpreter, CallArgs& args) {
  if (args.positional.empty()) return state.size(std::vector<Value>());
  return state.size(TRY(interpreter.to_vector(args.positional[0], args.span)));
}

Result<Value> numel_of_size(Interpreter&, CallArgs& args) {
  int64_t count = 1;
  if (auto* extents = args.positional.empty() ? nullptr : stage::sequence_items(args.positional[0])) {
    for (const Value& extent : *extents) count *= extent.as_index().value_or(1);
  }
  return Value(count);
}

// The axes of one tensor that torch.tensordot sums over: a number stands for the last ones of the first tensor and the
// first ones of the second.
std::optional<std::vector<int64_t>> summed_axes(const Value& dims, int64_t rank, bool of_first) {
  std::vector<int64_t> axes;
  if (auto count = dims.as_index()) {
    for (int64_t i = 0; i < *count; ++i) axes.push_back(of_first ? rank - *count + i : i);
    return axes;
  }
  const std::vector<Value>* both = stage::sequence_items(dims);
  if (!both || both->size() != 2) return std::nullopt;
  const Value& own = (*both)[of_first ? 0 : 1];
  const std::vector<Value>* listed = stage::sequence_items(own);
  for (const Value& axis : listed ? *listed : std::vector<Value>{own}) {
    if (!axis.as_index()) return std::nullopt;
    axes.push_back(*axis.as_index());
  }
  return axes;
}

Result<Value> tensordot(HostState& state, Interpreter&, CallArgs& args) {
  static constexpr stage::Signature kSignature{"tensordot", {"a", "b", "dims"}, 2};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  const at::Tensor *a = tensor_of(*read[0]), *b = tensor_of(*read[1]);
  const Value dims = read[2] ? *read[2] : Value(2);
  auto first = a && b ? summed_axes(dims, a->dim(), true) : std::nullopt;
  auto second = a && b ? summed_axes(dims, b->dim(), false) : std::nullopt;
  if (!first || !second) {
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      "`tensordot` takes two tensors and the axes to sum over, `2` or `([1], [0])`");
  }
  return TRY(guarded("tensordot", args.span, [&] { return state.wrap(at::tensordot(*a, *b, *first, *second)); }));
}

Result<Value> broadcast_shapes(HostState&, Interpreter&, CallArgs& args) {
  std::vector<at::Tensor> shapes;
  for (const Value& value : args.positional) {
    std::vector<int64_t> sizes;
    if (auto* items = stage::sequence_items(value)) {
      for (const Value& item : *items) sizes.push_back(item.as_index().value_or(1));
    }
    shapes.push_back(at::zeros({}).expand(sizes));
  }
  auto result = TRY(guarded("broadcast_shapes", args.span, [&] { return at::broadcast_tensors(shapes); }));
  std::vector<Value> sizes;
  if (!result.empty()) sizes.assign(result[0].sizes().begin(), result[0].sizes().end());
  return stage::make_tuple(std::move(sizes));
}

Result<Value> is_tensor(HostState&, Interpreter&, CallArgs& args) {
  return Value(args.positional.size() == 1 && tensor_of(args.positional[0]));
}

Result<Value> set_default_type(HostState& state, Interpreter&, CallArgs& args) {
  auto type = dtype_of(state, args.positional.empty() ? nullptr : &args.positional[0]);
  if (!type || !at::isFloatingType(*type)) {
    return make_error(DiagnosticKind::type_error, args.span, "`torch.set_default_dtype` takes a floating-point dtype");
  }
  set_default_dtype(*type);
  return Value();
}

Result<Value> get_default_type(HostState& state, Interpreter&, CallArgs&) {
  return state.dtype(c10::get_default_dtype_as_scalartype());
}

// The type of an operation on two values, tensors or numbers.
Result<Value> result_type(HostState& state, Interpreter&, CallArgs& args) {
  static constexpr stage::Signature kSignature{"result_type", {"tensor1", "tensor2"}, 2};
  stage::Arguments read = TRY(stage::Arguments::read(args, kSignature));
  auto number = [](const Value& value) -> std::optional<at::Scalar> {
    if (value.if_bool()) return at::Scalar(*value.if_bool());
    if (value.if_float()) return at::Scalar(*value.if_float());
    auto integer = value.as_index();
    return integer ? std::optional<at::Scalar>(*integer) : std::nullopt;
  };
  const at::Tensor *first = tensor_of(*read[0]), *second = tensor_of(*read[1]);
  auto left = number(*read[0]), right = number(*read[1]);
  if (first && second) return state.dtype(at::result_type(*first, *second));
  if (first && right) return state.dtype(at::result_type(*first, *right));
  if (left && second) return state.dtype(at::result_type(*left, *second));
  if (left && right) return state.dtype(at::result_type(*left, *right));
  return make_error(DiagnosticKind::type_error, args.span, "`torch.result_type` takes tensors or numbers");
}

// The type that two dtypes meet in.
Result<Value> promote_types(HostState& state, Interpreter&, CallArgs& args) {
  auto first = args.positional.size() == 2 ? dtype_of(state, &args.positional[0]) : std::nullopt;
  auto second = args.positional.size() == 2 ? dtype_of(state, &args.positional[1]) : std::nullopt;
  if (!first || !second) return make_error(DiagnosticKind::type_error, args.span, "`promote_types` takes two dtypes");
  return guarded("promote_types", args.span, [&] { return state.dtype(c10::promoteTypes(*first, *second)); });
}

Result<Value> nothing(HostState&, Interpreter&, CallArgs&) { return Value(); }
Result<Value> set_matmul_precision(HostState&, Interpreter&, CallArgs& call) {
  const std::string* name = call.positional.size() == 1 ? call.positional[0].if_string() : nullptr;
  if (name == nullptr || (*name != "highest" && *name != "high" && *name != "medium"))
    return stage::value_error(call.span, "the precision of products is \"highest\", \"high\" or \"medium\"");
  at::globalContext().setAllowTF32CuBLAS(*name != "highest");
  return Value();
}
Result<Value> always_false(HostState&, Interpreter&, CallArgs&) { return Value(false); }
Result<Value> on_cuda(HostState& state, Interpreter&, CallArgs&) { return Value(state.shown_device().is_cuda()); }
Result<Value> cuda_count(HostState& state, Interpreter&, CallArgs&) {
  return Value(state.shown_device().is_cuda() ? 1 : 0);
}

// The largest, smallest and least steps of a floating-point type.
struct FloatFacts {
  at::ScalarType type;
  double max, eps, tiny;
  int bits;
};
const FloatFacts kFloatFacts[] = {
    {at::kFloat, std::numeric_limits<float>::max(), std::numeric_limits<float>::epsilon(),
     std::numeric_limits<float>::min(), 32},
    {at::kDouble, std::numeric_limits<double>::max(), std::numeric_limits<double>::epsilon(),
     std::numeric_limits<double>::min(), 64},
    {at::kHalf, 65504.0, 0.0009765625, 6.103515625e-05, 16},
    {at::kBFloat16, 3.3895313892515355e38, 0.0078125, 1.1754943508222875e-38, 16},
    {at::kFloat8_e4m3fn, 448.0, 0.125, 0.015625, 8},
    {at::kFloat8_e5m2, 57344.0, 0.25, 6.103515625e-05, 8},
};

Result<Value> finfo(HostState& state, Interpreter&, CallArgs& args) {
  auto type = args.positional.empty() ? c10::get_default_dtype_as_scalartype() : dtype_of(state, &args.positional[0]);
  for (const FloatFacts& facts : kFloatFacts) {
    if (type != facts.type) continue;
    auto info = std::make_shared<ModuleObject>("finfo");
    info->set("max", facts.max);
    info->set("min", -facts.max);
    info->set("eps", facts.eps);
    info->set("tiny", facts.tiny);
    info->set("smallest_normal", facts.tiny);
    info->set("bits", facts.bits);
    info->set("dtype", Value(std::string_view(c10::toString(facts.type))));
    return Value(info);
  }
  return make_error(DiagnosticKind::type_error, args.span, "`torch.finfo` takes a floating-point dtype");
}

Result<Value> iinfo(HostState& state, Interpreter&, CallArgs& args) {
  auto type = args.positional.empty() ? std::nullopt : dtype_of(state, &args.positional[0]);
  if (!type || !at::isIntegralType(*type, false) || *type == at::kUInt64) {
    return make_error(DiagnosticKind::type_error, args.span, "`torch.iinfo` takes an integer dtype");
  }
  auto bits = static_cast<int>(c10::elementSize(*type)) * 8;
  bool is_signed = at::isSignedType(*type);
  auto info = std::make_shared<ModuleObject>("iinfo");
  int64_t max = std::numeric_limits<int64_t>::max() >> (64 - bits - (is_signed ? 0 : 1));
  info->set("bits", bits);
  info->set("max", max);
  info->set("min", is_signed ? -max - 1 : int64_t{0});
  return Value(info);
}

using Body = Result<Value> (*)(HostState&, Interpreter&, CallArgs&);
struct NativeRow {
  const char* name;
  Body body;
};

constexpr NativeRow kNative[] = {
    {"tensor", tensor},
    {"as_tensor", tensor},
    {"asarray", tensor},
    {"manual_seed", manual_seed},
    {"Generator", generator},
    {"broadcast_shapes", broadcast_shapes},
    {"is_tensor", is_tensor},
    {"set_default_dtype", set_default_type},
    {"get_default_dtype", get_default_type},
    {"no_grad", grad_mode},
    {"enable_grad", grad_mode},
    {"inference_mode", grad_mode},
    {"set_grad_enabled", grad_mode},
    {"is_grad_enabled", always_false},
    {"is_inference_mode_enabled", always_false},
    {"set_float32_matmul_precision", set_matmul_precision},
    {"use_deterministic_algorithms", nothing},
    {"set_default_device", nothing},
    {"set_printoptions", nothing},
    {"promote_types", promote_types},
    {"result_type", result_type},
    {"tensordot", tensordot},
    {"autocast", autocast},
    {"finfo", finfo},
    {"iinfo", iinfo},
};

constexpr const char* kForbiddenCuda[] = {"Event",     "Stream",           "stream", "graph",
                                          "CUDAGraph", "memory_allocated", "graphs", "nvtx"};

Error forbidden(const std::string& name, Span span) {
  return make_error(DiagnosticKind::forbidden, span, fmt::format("`{}` is not available to programs", name),
                    "they may not reach files, the network, the clock or another compiler");
}

Error in_functional(Name name, Span span) {
  return make_error(DiagnosticKind::unknown_attribute, span, fmt::format("module `torch` has no `{}`", name.text()),
                    fmt::format("it is `torch.nn.functional.{}`", name.text()));
}

void add_native(HostState& state, ModuleObject& module, std::string_view name, Body body) {
  module.function(name,
                  [&state, body](Interpreter& interpreter, CallArgs& args) { return body(state, interpreter, args); });
}

// `prefix` stands before the name in ATen: linalg_qr.
std::shared_ptr<ModuleObject> prefixed_namespace(HostState& state, const std::string& name, const std::string& prefix) {
  auto made = std::make_shared<ModuleObject>("torch." + name);
  made->missing = [&state, prefix](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    const Callable* callable = state.aten(prefix + attribute.str());
    if (!callable) return std::optional<Value>();
    return std::optional<Value>(std::make_shared<TorchFunction>(state, *callable));
  };
  return made;
}

// torch.ops.aten.add and torch.ops.aten.add.Tensor.
struct AtenOperator final : stage::TypedObject<AtenOperator> {
  static constexpr stage::Type kType{"OpOverloadPacket"};
  AtenOperator(HostState& state_, std::string name_, const Callable& callable_)
      : state(state_), name(std::move(name_)), callable(callable_) {}
  Result<Value> call(Interpreter&, CallArgs args) override { return callable.call(state, nullptr, args); }
  Result<Value> get_attribute(Interpreter&, Name overload, Span span) override {
    auto chosen = state.aten_overload(name, overload.text() == "default" ? "" : overload.str());
    if (!chosen) {
      return make_error(DiagnosticKind::unknown_attribute, span,
                        fmt::format("`aten::{}` has no overload `{}`", name, overload.text()));
    }
    HostState& room = state;
    return Value(std::make_shared<stage::BuiltinFunction>(
        name, [&room, chosen](Interpreter&, CallArgs& args) { return chosen->call(room, nullptr, args); }));
  }
  HostState& state;
  std::string name;
  const Callable& callable;
};

std::shared_ptr<ModuleObject> ops_namespace(HostState& state) {
  auto aten = std::make_shared<ModuleObject>("torch.ops.aten");
  aten->missing = [&state](Interpreter&, Name name, Span span) -> Result<std::optional<Value>> {
    if (is_forbidden(name.text())) return forbidden("torch.ops.aten." + name.str(), span);
    const Callable* callable = state.aten(name.str());
    if (!callable) return std::optional<Value>();
    return std::optional<Value>(std::make_shared<AtenOperator>(state, name.str(), *callable));
  };
  auto ops = std::make_shared<ModuleObject>("torch.ops");
  ops->set("aten", aten);
  return ops;
}

std::shared_ptr<ModuleObject> cuda_namespace(HostState& state) {
  auto cuda = std::make_shared<ModuleObject>("torch.cuda");
  add_native(state, *cuda, "is_available", on_cuda);
  add_native(state, *cuda, "device", on_device);
  add_native(state, *cuda, "device_count", cuda_count);
  add_native(state, *cuda, "synchronize", nothing);
  add_native(state, *cuda, "empty_cache", nothing);
  add_native(state, *cuda, "manual_seed", nothing);
  add_native(state, *cuda, "manual_seed_all", nothing);
  auto amp = std::make_shared<ModuleObject>("torch.cuda.amp");
  add_native(state, *amp, "autocast", autocast);
  cuda->set("amp", amp);
  cuda->missing = [](Interpreter&, Name name, Span span) -> Result<std::optional<Value>> {
    for (const char* word : kForbiddenCuda) {
      if (name.text() == word) return forbidden("torch.cuda." + name.str(), span);
    }
    return std::optional<Value>();
  };
  return cuda;
}

// Switches that programs set; but for TF32 of matrix products, which only a GPU has, they change nothing here.
std::shared_ptr<ModuleObject> backends_namespace() {
  auto backends = std::make_shared<ModuleObject>("torch.backends");
  auto cudnn = std::make_shared<ModuleObject>("torch.backends.cudnn");
  for (const char* name : {"benchmark", "deterministic", "allow_tf32"}) cudnn->set(name, false);
  cudnn->set("enabled", true);
  auto matmul = std::make_shared<ModuleObject>("torch.backends.cuda.matmul");
  matmul->set("allow_tf32", false);
  matmul->changed = [](Interpreter& interpreter, Name name, const Value& value, Span span) -> Status {
    if (name.text() == "allow_tf32") at::globalContext().setAllowTF32CuBLAS(TRY(interpreter.truth(value, span)));
    return {};
  };
  auto cuda = std::make_shared<ModuleObject>("torch.backends.cuda");
  cuda->set("matmul", matmul);
  backends->set("cudnn", cudnn);
  backends->set("cuda", cuda);
  return backends;
}

void add_constants(HostState& state, ModuleObject& torch) {
  for (auto& [name, dtype] : state.dtype_names()) torch.set(name, dtype);
  torch.set("pi", M_PI);
  torch.set("e", M_E);
  torch.set("inf", std::numeric_limits<double>::infinity());
  torch.set("nan", std::numeric_limits<double>::quiet_NaN());
  torch.set("newaxis", Value());
  torch.set("__version__", TORCH_VERSION);
  auto format = [&](const char* name, bool is_layout, int64_t code) {
    torch.set(name, std::make_shared<FormatObject>(name, is_layout, code));
  };
  format("strided", true, static_cast<int64_t>(at::kStrided));
  format("contiguous_format", false, static_cast<int64_t>(at::MemoryFormat::Contiguous));
  format("preserve_format", false, static_cast<int64_t>(at::MemoryFormat::Preserve));
  format("channels_last", false, static_cast<int64_t>(at::MemoryFormat::ChannelsLast));
  format("channels_last_3d", false, static_cast<int64_t>(at::MemoryFormat::ChannelsLast3d));
}

void add_tensor_class(HostState& state, Interpreter& interpreter, ModuleObject& torch) {
  auto made = std::make_shared<stage::ClassObject>();
  made->name = Name("Tensor");
  made->resolution_order.push_back(made.get());
  made->sealed = true;
  made->construct = [&state](Interpreter&, CallArgs& args) { return make_tensor(state, args); };
  state.classes["Tensor"] = made;
  interpreter.set_class(TensorObject::kType, made);
  torch.set("Tensor", made);
  constexpr std::pair<const char*, at::ScalarType> kLegacy[] = {
      {"FloatTensor", at::kFloat}, {"HalfTensor", at::kHalf}, {"LongTensor", at::kLong}, {"IntTensor", at::kInt}};
  for (auto& [name, type] : kLegacy) {
    torch.function(name, [&state, type = type](Interpreter&, CallArgs& args) -> Result<Value> {
      Value value = TRY(make_tensor(state, args));
      return TRY(guarded("to", args.span, [&] { return state.wrap(tensor_of(value)->to(type)); }));
    });
  }
}

// Classes of values that are no tensors, for annotations and isinstance.
void add_value_classes(HostState& state, Interpreter& interpreter, ModuleObject& torch) {
  auto add = [&](const char* name, const stage::Type& type, Body construct) {
    auto made = std::make_shared<stage::ClassObject>();
    made->name = Name(name);
    made->resolution_order.push_back(made.get());
    made->sealed = true;
    made->construct = [&state, construct](Interpreter& run, CallArgs& args) { return construct(state, run, args); };
    interpreter.set_class(type, made);
    torch.set(name, made);
  };
  add("device", DeviceObject::kType, device);
  add("dtype", DtypeObject::kType, [](HostState&, Interpreter&, CallArgs& args) -> Result<Value> {
    return make_error(DiagnosticKind::type_error, args.span, "cannot create `torch.dtype` instances",
                      "name one: `torch.float16`");
  });
}

// torch.Size: a tuple that can count elements.
void add_size_class(HostState& state, Interpreter& interpreter, ModuleObject& torch) {
  auto tuple = interpreter.find_builtin("tuple")->get_shared<stage::ClassObject>();
  auto made = std::make_shared<stage::ClassObject>();
  made->name = Name("Size");
  made->bases = {tuple};
  made->resolution_order = {made.get()};
  made->resolution_order.insert(made->resolution_order.end(), tuple->resolution_order.begin(),
                                tuple->resolution_order.end());
  made->sealed = true;
  made->members.set(Name("numel"), std::make_shared<stage::BuiltinFunction>("numel", numel_of_size));
  made->construct = [&state](Interpreter& run, CallArgs& args) { return make_size(state, run, args); };
  auto fields = std::make_shared<stage::TupleFields>();
  fields->class_object = made;
  fields->class_name = "torch.Size";
  state.size_fields = std::move(fields);
  state.classes["Size"] = made;
  torch.set("Size", made);
}

}  // namespace

void install_torch_module(HostState& state, Interpreter& interpreter) {
  auto torch = std::make_shared<ModuleObject>("torch");
  add_constants(state, *torch);
  add_tensor_class(state, interpreter, *torch);
  add_size_class(state, interpreter, *torch);
  add_value_classes(state, interpreter, *torch);
  for (const NativeRow& row : kNative) add_native(state, *torch, row.name, row.body);
  for (const VariadicRow& row : kVariadic) {
    torch->function(row.name, [&state, &row](Interpreter&, CallArgs& args) { return call_variadic(state, row, args); });
  }
  if (state.is_script()) {
    add_script_functions(state, *torch);
  } else {
    auto cuda = cuda_namespace(state);
    add_python_packages(interpreter);
    auto amp = std::make_shared<ModuleObject>("torch.amp");
    add_native(state, *amp, "autocast", autocast);
    for (auto& [name, part] : {std::pair("cuda", cuda), {"amp", amp}}) {
      torch->set(name, part);
      interpreter.add_module(std::string("torch.") + name, part);
    }
  }
  std::pair<const char*, std::shared_ptr<ModuleObject>> children[] = {
      {"backends", backends_namespace()},
      {"ops", ops_namespace(state)},
      {"linalg", prefixed_namespace(state, "linalg", "linalg_")},
      {"special", prefixed_namespace(state, "special", "special_")},
      {"fft", prefixed_namespace(state, "fft", "fft_")},
  };
  for (auto& [name, child] : children) {
    torch->set(name, child);
    interpreter.add_module(std::string("torch.") + name, child);
  }
  torch->missing = [&state](Interpreter& run, Name name, Span span) -> Result<std::optional<Value>> {
    if (state.is_script()) {
      if (auto part = TRY(stage::find_part(run, "torch", name, span))) return std::optional<Value>(part);
    }
    if (name.text() == "torch") return std::optional<Value>(run.find_module("torch"));
    if (is_forbidden(name.text())) return forbidden("torch." + name.str(), span);
    const Callable* callable = state.torch_function(name);
    if (!callable && is_only_functional(name.text())) return in_functional(name, span);
    if (!callable) return std::optional<Value>();
    return std::optional<Value>(std::make_shared<TorchFunction>(state, *callable));
  };
  for (auto& [name, type] : {std::pair("float", at::kDouble), {"int", at::kLong}, {"bool", at::kBool}}) {
    Value* builtin = interpreter.find_builtin(name);
    if (builtin && builtin->if_object()) state.python_types.emplace_back(*builtin->if_object(), type);
  }
  interpreter.add_module("torch", torch);
}

}  // namespace tilepilot::eval
