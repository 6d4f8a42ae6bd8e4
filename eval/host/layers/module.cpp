#include "eval/host/layers/module.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "eval/host/edge.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Name;
using stage::Value;

namespace {

const Name& training_name() {
  static const Name kName("training");
  return kName;
}

const Name& forward_name() {
  static const Name kName("forward");
  return kName;
}

class EntryIterator final : public stage::Iterator {
 public:
  explicit EntryIterator(std::vector<Value> items) : items_(std::move(items)) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (at_ == items_.size()) return std::optional<Value>();
    return std::optional<Value>(items_[at_++]);
  }

 private:
  std::vector<Value> items_;
  size_t at_ = 0;
};

// Of a recurrent module: a list for each layer and direction.
Value weights_by_layer(const NnModule::Entries& parameters) {
  std::vector<std::vector<Value>> layers;
  for (const NnModule::Entry& entry : parameters) {
    if (entry.name.text().rfind("weight_ih", 0) == 0) layers.emplace_back();
    layers.back().push_back(entry.value);
  }
  std::vector<Value> lists;
  for (std::vector<Value>& layer : layers) lists.push_back(stage::make_list(std::move(layer)));
  return stage::make_list(std::move(lists));
}

}  // namespace

NnModule* as_module(const Value& value) { return value.get_if<NnModule>(); }

NnModule::NnModule(HostState& state, std::shared_ptr<stage::ClassObject> class_object, const NativeClass* native)
    : InstanceObject(std::move(class_object)), state_(state), native_(native) {
  attributes().set(training_name(), true);
}

void NnModule::release() {
  parameters_.clear();
  buffers_.clear();
  modules_.clear();
  InstanceObject::release();
}

bool NnModule::training() {
  Value* value = attributes().find(training_name());
  return value && value->if_bool() && *value->if_bool();
}

void NnModule::set_training(bool training) { attributes().set(training_name(), training); }

const NnModule::Entry* NnModule::find(const Entries& entries, Name name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void NnModule::put(Entries& entries, Entry entry) {
  for (Entry& existing : entries) {
    if (existing.name == entry.name) {
      existing.value = std::move(entry.value);
      return;
    }
  }
  entries.push_back(std::move(entry));
}

void NnModule::register_as_buffer(Name name) {
  const Value* held = attributes().find(name);
  if (!held || !tensor_of(*held)) return;
  register_buffer(name, *held);
  attributes().erase(name);
}

void NnModule::drop(Entries& entries, Name name) {
  entries.erase(std::remove_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; }),
                entries.end());
}

std::optional<at::Tensor> NnModule::tensor(std::string_view name) const {
  Name interned(name);
  const Entry* entry = find(parameters_, interned);
  if (!entry) entry = find(buffers_, interned);
  const at::Tensor* found = entry ? tensor_of(entry->value) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

void NnModule::add_parameter(std::string_view name, at::IntArrayRef shape, const Arguments& config, bool present) {
  Value value;
  if (present) {
    auto options =
        at::device(state_.device()).dtype(config.dtype("dtype").value_or(c10::get_default_dtype_as_scalartype()));
    value = state_.wrap_parameter(at::empty(shape, options));
  }
  register_parameter(Name(name), std::move(value));
}

void NnModule::add_buffer(std::string_view name, at::Tensor tensor) {
  register_buffer(Name(name), tensor.defined() ? state_.wrap(std::move(tensor)) : Value());
}

Result<Value> NnModule::get_attribute(Interpreter& interpreter, Name name, Span span) {
  for (const Entries* entries : {&modules_, &parameters_, &buffers_}) {
    if (const Entry* entry = find(*entries, name)) return entry->value;
  }
  static const Name kAllWeights("all_weights"), kFirstWeight("weight_ih_l0");
  if (name == kAllWeights && find(parameters_, kFirstWeight)) return weights_by_layer(parameters_);
  return InstanceObject::get_attribute(interpreter, name, span);
}

Status NnModule::set_tensor(Name name, Value value, Span span) {
  if (tensor_object(value)->is_parameter) {
    drop(modules_, name);
    drop(buffers_, name);
    attributes().erase(name);
    register_parameter(name, std::move(value));
    return {};
  }
  if (find(parameters_, name)) {
    return make_error(DiagnosticKind::type_error, span,
                      fmt::format("a tensor cannot be assigned as parameter `{}`", name.text()),
                      "wrap it in `nn.Parameter(...)`");
  }
  if (find(buffers_, name)) {
    register_buffer(name, std::move(value));
  } else {
    attributes().set(name, std::move(value));
  }
  return {};
}

Status NnModule::set_attribute(Interpreter& interpreter, Name name, Value value, Span span) {
  bool is_module = as_module(value) != nullptr;
  TensorObject* object = tensor_object(value);
  if (!initialised && (is_module || (object && object->is_parameter))) {
    return make_error(DiagnosticKind::unknown_attribute, span,
                      fmt::format("`{}` is assigned before `Module.__init__()` was called", name.text()),
                      "call `super().__init__()` first");
  }
  if (is_module) {
    drop(parameters_, name);
    drop(buffers_, name);
    attributes().erase(name);
    register_module(name, std::move(value));
    return {};
  }
  if (object) return set_tensor(name, std::move(value), span);
  for (Entries* entries : {&parameters_, &buffers_, &modules_}) {
    if (!value.is_none() || !find(*entries, name)) continue;
    put(*entries, {name, Value()});
    return {};
  }
  if (constructor) {
    size_t index = constructor->signature().index_of(name.text());
    if (index != Signature::npos) {
      auto converted = to_argument(state_, constructor->signature().parameters()[index], value, {});
      if (converted) config[index] = std::move(*converted);
    }
  }
  return InstanceObject::set_attribute(interpreter, name, std::move(value), span);
}

Result<Value> NnModule::call(Interpreter& interpreter, CallArgs args) {
  Value* forward = attributes().find(forward_name());
  if (forward) return interpreter.call(*forward, std::move(args));
  forward = class_object()->lookup(forward_name());
  if (!forward) {
    return make_error(DiagnosticKind::unknown_attribute, args.span,
                      fmt::format("module `{}` has no `forward`", type_name()));
  }
  args.positional.insert(args.positional.begin(), Value(shared_from_this()));
  if (!args.positional_spans.empty()) args.positional_spans.insert(args.positional_spans.begin(), args.span);
  return interpreter.call(*forward, std::move(args));
}

Result<Value> NnModule::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  for (const Entries* entries : {&modules_, &parameters_, &buffers_}) {
    if (const Entry* entry = find(*entries, name)) return interpreter.call(entry->value, std::move(args));
  }
  return InstanceObject::call_method(interpreter, name, std::move(args), name_span);
}

Result<Value> NnModule::get_item(Interpreter& interpreter, const Value& index, Span span) {
  if (!native_ || native_->container == ContainerKind::none) return InstanceObject::get_item(interpreter, index, span);
  if (native_->container == ContainerKind::sequence) return get_sequence_item(interpreter, *this, index, span);
  const std::string* key = index.if_string();
  const Entry* entry = key ? find(items(), Name(*key)) : nullptr;
  if (entry) return entry->value;
  return make_error(DiagnosticKind::key_error, span, fmt::format("`{}` has no such key", type_name()));
}

Status NnModule::set_item(Interpreter& interpreter, const Value& index, Value value, Span span) {
  if (!native_ || native_->container == ContainerKind::none) {
    return InstanceObject::set_item(interpreter, index, std::move(value), span);
  }
  if (auto* key = index.if_string()) {
    put(items(), {Name(*key), std::move(value)});
    return {};
  }
  auto position = index.as_index();
  auto count = static_cast<int64_t>(items().size());
  if (position && *position < 0) *position += count;
  if (!position || *position < 0 || *position >= count) {
    return make_error(DiagnosticKind::index_error, span, fmt::format("the index is outside this `{}`", type_name()));
  }
  items()[static_cast<size_t>(*position)].value = std::move(value);
  return {};
}

Result<int64_t> NnModule::length(Interpreter& interpreter, Span span) {
  if (!native_ || native_->container == ContainerKind::none) return InstanceObject::length(interpreter, span);
  return static_cast<int64_t>(items().size());
}

Result<std::unique_ptr<stage::Iterator>> NnModule::iterate(Interpreter& interpreter, Span span) {
  if (!native_ || native_->container == ContainerKind::none) return InstanceObject::iterate(interpreter, span);
  std::vector<Value> values;
  for (const Entry& entry : items()) {
    values.push_back(native_->container == ContainerKind::mapping ? Value(entry.name.text()) : entry.value);
  }
  return std::unique_ptr<stage::Iterator>(std::make_unique<EntryIterator>(std::move(values)));
}

Result<bool> NnModule::contains(Interpreter& interpreter, const Value& item, Span span) {
  if (!native_ || native_->container == ContainerKind::none) return InstanceObject::contains(interpreter, item, span);
  if (auto* key = item.if_string()) return find(items(), Name(*key)) != nullptr;
  for (const Entry& entry : items()) {
    if (item.if_object() && entry.value.if_object() && *item.if_object() == *entry.value.if_object()) return true;
  }
  return false;
}

Result<bool> NnModule::truth(Interpreter& interpreter, Span span) {
  if (!native_ || native_->container == ContainerKind::none) return InstanceObject::truth(interpreter, span);
  return !items().empty();
}

Result<std::string> NnModule::repr(Interpreter& interpreter) {
  std::string text(type_name());
  text += "(";
  for (const Entry& entry : modules_) {
    text += fmt::format("\n  ({}): {}", entry.name.text(), TRY(interpreter.repr(entry.value)));
  }
  return text + (modules_.empty() ? ")" : "\n)");
}

namespace {

void collect_modules(const std::string& path, const Value& value, std::unordered_set<const NnModule*>& seen,
                     std::vector<NamedModule>& out) {
  NnModule* module = as_module(value);
  if (!module || !seen.insert(module).second) return;
  out.push_back({path, value});
  for (const NnModule::Entry& entry : module->modules()) {
    collect_modules(path.empty() ? entry.name.str() : path + "." + entry.name.str(), entry.value, seen, out);
  }
}

void collect_tensors(const std::string& prefix, NnModule& module, std::vector<NamedTensor>& out) {
  for (const NnModule::Entry& entry : module.parameters()) {
    if (auto* tensor = tensor_of(entry.value)) out.push_back({prefix + entry.name.str(), *tensor, false});
  }
  for (const NnModule::Entry& entry : module.buffers()) {
    auto* tensor = tensor_of(entry.value);
    if (tensor && entry.persistent) out.push_back({prefix + entry.name.str(), *tensor, true});
  }
  for (const NnModule::Entry& entry : module.modules()) {
    if (NnModule* child = as_module(entry.value)) collect_tensors(prefix + entry.name.str() + ".", *child, out);
  }
}

}  // namespace

std::vector<NamedModule> all_modules(const Value& root) {
  std::unordered_set<const NnModule*> seen;
  std::vector<NamedModule> out;
  collect_modules("", root, seen, out);
  return out;
}

std::vector<NamedTensor> named_tensors(const Value& module) {
  std::vector<NamedTensor> out;
  if (NnModule* root = as_module(module)) collect_tensors("", *root, out);
  return out;
}

Status load_tensors(const Value& module, const std::vector<NamedTensor>& values) {
  at::NoGradGuard no_grad;
  std::unordered_map<std::string, const at::Tensor*> given;
  for (const NamedTensor& value : values) given.emplace(value.name, &value.tensor);
  std::string missing, misshapen;
  for (NamedTensor& own : named_tensors(module)) {
    auto found = given.find(own.name);
    if (found == given.end()) {
      missing += fmt::format("{}`{}`", missing.empty() ? "" : ", ", own.name);
      continue;
    }
    const at::Tensor& source = *found->second;
    given.erase(found);
    if (source.sizes() != own.tensor.sizes()) {
      misshapen += fmt::format("{}`{}`", misshapen.empty() ? "" : ", ", own.name);
      continue;
    }
    TRY(guarded("copy", {}, [&] { own.tensor.copy_(source); }));
  }
  std::string unknown;
  for (auto& [name, tensor] : given) unknown += fmt::format("{}`{}`", unknown.empty() ? "" : ", ", name);
  std::string message;
  auto say = [&](std::string_view what, const std::string& names) {
    if (!names.empty()) message += fmt::format("{}{}: {}", message.empty() ? "" : "; ", what, names);
  };
  say("weights that the module lacks", unknown);
  say("weights that were not given", missing);
  say("weights of another shape", misshapen);
  if (message.empty()) return {};
  return make_error(DiagnosticKind::value_error, {}, message);
}

void register_as_buffer(const Value& root, std::string_view name) {
  const size_t dot = name.rfind('.');
  const bool nested = dot != std::string_view::npos;
  const std::string_view path = nested ? name.substr(0, dot) : "";
  for (const NamedModule& entry : all_modules(root))
    if (entry.path == path) entry.module().register_as_buffer(Name(nested ? name.substr(dot + 1) : name));
}

void set_training(const Value& module, bool training) {
  for (const NamedModule& entry : all_modules(module)) entry.module().set_training(training);
}

}  // namespace tilepilot::eval
