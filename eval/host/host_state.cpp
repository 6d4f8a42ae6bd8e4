#include "eval/host/host_state.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <mutex>

#include "eval/host/callable.h"
#include "eval/host/device_module.h"
#include "eval/host/edge.h"
#include "eval/host/namespaces.h"
#include "eval/host/tensors/moved_tensors.h"

namespace tilepilot::eval {

using stage::Name;
using stage::Value;

namespace {

// The names torch has for element types; of two names for one type the first is what it prints as.
constexpr std::pair<const char*, at::ScalarType> kDtypes[] = {
    {"float32", at::kFloat},
    {"float", at::kFloat},
    {"float64", at::kDouble},
    {"double", at::kDouble},
    {"float16", at::kHalf},
    {"half", at::kHalf},
    {"bfloat16", at::kBFloat16},
    {"float8_e4m3fn", at::kFloat8_e4m3fn},
    {"float8_e5m2", at::kFloat8_e5m2},
    {"float8_e8m0fnu", at::kFloat8_e8m0fnu},
    {"float4_e2m1fn_x2", at::kFloat4_e2m1fn_x2},
    {"uint8", at::kByte},
    {"int8", at::kChar},
    {"int16", at::kShort},
    {"short", at::kShort},
    {"int32", at::kInt},
    {"int", at::kInt},
    {"int64", at::kLong},
    {"long", at::kLong},
    {"bool", at::kBool},
    {"uint16", at::kUInt16},
    {"uint32", at::kUInt32},
    {"uint64", at::kUInt64},
    {"complex64", at::kComplexFloat},
    {"complex128", at::kComplexDouble},
    {"cfloat", at::kComplexFloat},
};

// Functions whose tensor parameters take plain numbers, as PyTorch's argument parser has them.
constexpr std::string_view kNumberFriendly[] = {
    "add",         "add_",         "sub",          "sub_",          "subtract", "subtract_",   "mul",
    "mul_",        "multiply",     "multiply_",    "div",           "div_",     "divide",      "divide_",
    "true_divide", "true_divide_", "floor_divide", "floor_divide_", "copy_",    "logical_and", "logical_or"};

SignatureRules rules_of(std::string_view name) {
  SignatureRules rules;
  for (std::string_view friendly : kNumberFriendly) rules.numbers_as_tensors |= name == friendly;
  return rules;
}

bool names_dimensions(std::string_view overload) {
  return overload.find("imname") != std::string_view::npos || overload.find("names") != std::string_view::npos;
}

std::optional<c10::OperatorHandle> find_operator(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
}

std::unique_ptr<Overload> aten_overload_of(const c10::OperatorHandle& handle, SignatureRules rules) {
  auto overload = std::make_unique<Overload>(Signature(handle.schema(), rules), handle);
  for (const c10::Argument& result : handle.schema().returns()) {
    if (!result.name().empty()) overload->result_names.push_back(result.name());
  }
  if (overload->result_names.size() != handle.schema().returns().size()) overload->result_names.clear();
  return overload;
}

std::string_view row_name(const FunctionRow& row) {
  std::string_view signature = row.signature;
  return signature.substr(0, signature.find('('));
}

std::unique_ptr<Overload> row_overload(const FunctionRow& row) {
  Signature signature(torch::jit::parseSchema(std::string(row.signature) + " -> Tensor"), rules_of(row_name(row)));
  if (row.body) return std::make_unique<Overload>(std::move(signature), row.body);
  std::string_view target = row.aten;
  size_t dot = target.find('.');
  std::string name(target.substr(0, dot));
  std::string overload = dot == std::string_view::npos ? "" : std::string(target.substr(dot + 1));
  auto handle = find_operator(name, overload);
  TORCH_INTERNAL_ASSERT(handle, "no operator ", row.aten);
  return std::make_unique<Overload>(std::move(signature), *handle, find_operator(name + "_", overload));
}

}  // namespace

HostState::HostState(const TorchHostOptions& options)
    : device_(options.device), gpu_(options.gpu), is_script_(options.is_script), shows_cuda_(options.shows_cuda) {
  if (!is_script_) no_grad_.emplace();
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    std::string_view full = name.name;
    if (full.substr(0, 6) == "aten::") overloads_[std::string(full.substr(6))].push_back(name.overload_name);
  }
  dtypes_.resize(static_cast<size_t>(at::ScalarType::NumOptions));
  for (auto& [name, type] : kDtypes) {
    Value& value = dtypes_[static_cast<size_t>(type)];
    if (value.is_none()) value = std::make_shared<DtypeObject>(type, name);
    dtype_names_.emplace_back(name, value);
  }
  tensors_ = make_tensor_host(*this);
}

HostState::~HostState() = default;

std::vector<at::Tensor> HostState::take_noted() {
  std::vector<at::Tensor> tensors;
  for (auto& weak : noted_) {
    if (auto object = weak.lock()) tensors.push_back(object->tensor);
  }
  noted_.clear();
  notes_tensors_ = false;
  return tensors;
}

Value HostState::wrap_parameter(at::Tensor tensor, bool requires_grad) {
  auto object = noted(std::make_shared<TensorObject>(*this, placed(std::move(tensor))));
  object->is_parameter = true;
  object->tensor.set_requires_grad(requires_grad);
  return object;
}

Value HostState::dtype(at::ScalarType type) {
  Value& value = dtypes_[static_cast<size_t>(type)];
  if (value.is_none()) value = std::make_shared<DtypeObject>(type, c10::toString(type));
  return value;
}

Value HostState::size(std::vector<Value> extents) const {
  auto size = std::make_shared<stage::TupleObject>(std::move(extents));
  size->fields = size_fields;
  return Value(std::move(size));
}

const Callable* HostState::resolve(Cache& cache, Name name, FunctionTable table, Fallback fallback) {
  auto found = cache.find(name);
  if (found != cache.end()) return found->second.get();
  auto callable = std::make_unique<Callable>(name.str());
  for (const FunctionRow& row : table) {
    if (row_name(row) == name.text()) callable->add(row_overload(row));
  }
  auto overloads = overloads_.find(name.str());
  bool method = fallback == Fallback::methods;
  bool open = fallback != Fallback::none && !is_forbidden(name.text());
  if (open && callable->empty() && overloads != overloads_.end()) {
    for (const std::string& overload : overloads->second) {
      if (names_dimensions(overload)) continue;
      auto added = aten_overload_of(*find_operator(name.str(), overload), rules_of(name.text()));
      if (added->signature.supported() && (!method || added->signature.is_method())) callable->add(std::move(added));
    }
    callable->sort();
  }
  if (callable->empty()) callable.reset();
  return cache.emplace(name, std::move(callable)).first->second.get();
}

const Callable* HostState::tensor_method(Name name) {
  return resolve(methods_, name, tensor_method_table(),
                 is_only_functional(name.text()) ? Fallback::none : Fallback::methods);
}

const Callable* HostState::torch_function(Name name) {
  bool elsewhere = is_only_functional(name.text()) || is_only_method(name.text());
  return resolve(torch_, name, torch_function_table(), elsewhere ? Fallback::none : Fallback::operators);
}

const Callable* HostState::initializer(Name name) {
  return resolve(initializers_, name, initializer_table(), Fallback::none);
}

const Callable* HostState::functional(Name name) {
  auto found = functional_.find(name);
  if (found != functional_.end()) return found->second.get();
  for (const FunctionRow& row : functional_loss_table()) {
    if (row_name(row) == name.text()) return resolve(functional_, name, functional_loss_table(), Fallback::none);
  }
  return resolve(functional_, name, functional_table(),
                 is_functional(name.text()) ? Fallback::operators : Fallback::none);
}

const Callable* HostState::aten(const std::string& name) { return resolve(aten_, Name(name), {}, Fallback::operators); }

std::shared_ptr<const Callable> HostState::aten_overload(const std::string& name, const std::string& overload) {
  auto handle = find_operator(name, overload);
  if (!handle || is_forbidden(name)) return nullptr;
  auto callable = std::make_shared<Callable>(name);
  SignatureRules rules;
  rules.numbers_as_tensors = true;  // `torch.ops` takes them for any tensor
  callable->add(aten_overload_of(*handle, rules));
  return callable;
}

std::vector<std::string> HostState::method_names() const {
  std::vector<std::string> names;
  for (auto& [name, overloads] : overloads_) {
    if (name[0] != '_') names.push_back(name);
  }
  return names;
}

void HostState::seed(uint64_t seed) const {
  if (!device_.is_cpu()) return at::manual_seed(seed);
  at::Generator generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

TorchHost::TorchHost(TorchHostOptions options) : state_(std::make_unique<HostState>(options)) {}
TorchHost::~TorchHost() = default;

void TorchHost::install(stage::Interpreter& interpreter) {
  install_torch_module(*state_, interpreter);
  install_modules(*state_, interpreter);
  if (state_->is_script()) add_device_module(*state_, interpreter);
}

stage::TensorHost& TorchHost::tensors() { return state_->tensors(); }

void TorchHost::seed(uint64_t seed) { state_->seed(seed); }

void TorchHost::gather() { state_->note_tensors(); }

Status TorchHost::move_to(const std::string& device) {
  state_->set_device(at::Device(device));
  return guarded("to", {}, [&] { move_tensors(state_->take_noted(), state_->device()); });
}

std::string TorchHost::use_device(const std::string& device) {
  std::string before = state_->device().str();
  state_->set_device(at::Device(device));
  return before;
}

void set_default_dtype(at::ScalarType type) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(type)); }

Value wrap_tensor(TorchHost& host, at::Tensor tensor) { return host.state().wrap(std::move(tensor)); }

}  // namespace tilepilot::eval
