#include "eval/host/tensors/tensor_object.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "eval/host/autograd.h"
#include "eval/host/callable.h"
#include "eval/host/edge.h"
#include "eval/host/host_state.h"
#include "eval/host/tensors/indexing.h"
#include "eval/host/tensors/tensor_methods.h"
#include "eval/host/tensors/tensor_text.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Name;
using stage::Value;

namespace {

using Property = Value (*)(HostState&, const TensorObject&);

// Attributes that are not methods. What ATen may refuse (T of a 3-d tensor) goes through the guard of the caller.
const std::unordered_map<Name, Property, stage::NameHash>& properties() {
  static const std::unordered_map<Name, Property, stage::NameHash> kProperties = {
      {Name("shape"), [](HostState& state, const TensorObject& x) { return state.size(x.tensor.sizes()); }},
      {Name("dtype"), [](HostState& state, const TensorObject& x) { return state.dtype(x.tensor.scalar_type()); }},
      {Name("device"),
       [](HostState& state, const TensorObject&) -> Value {
         return std::make_shared<DeviceObject>(state.shown_device());
       }},
      {Name("layout"),
       [](HostState&, const TensorObject& x) -> Value {
         return std::make_shared<FormatObject>("strided", true, static_cast<int64_t>(x.tensor.layout()));
       }},
      {Name("ndim"), [](HostState&, const TensorObject& x) { return Value(x.tensor.dim()); }},
      {Name("T"), [](HostState& state, const TensorObject& x) { return state.wrap(x.tensor.numpy_T()); }},
      {Name("mT"), [](HostState& state, const TensorObject& x) { return state.wrap(x.tensor.mT()); }},
      {Name("H"), [](HostState& state, const TensorObject& x) { return state.wrap(x.tensor.matrix_H()); }},
      {Name("real"), [](HostState& state, const TensorObject& x) { return state.wrap(at::real(x.tensor)); }},
      {Name("imag"), [](HostState& state, const TensorObject& x) { return state.wrap(at::imag(x.tensor)); }},
      {Name("data"), [](HostState& state, const TensorObject& x) { return state.wrap(x.tensor.detach()); }},
      {Name("grad"),
       [](HostState& state, const TensorObject& x) {
         const at::Tensor& grad = x.tensor.grad();
         return grad.defined() ? state.wrap(grad) : Value();
       }},
      {Name("grad_fn"), [](HostState&, const TensorObject& x) { return gradient_function(x.tensor); }},
      {Name("requires_grad"), [](HostState&, const TensorObject& x) { return Value(x.tensor.requires_grad()); }},
      {Name("is_leaf"), [](HostState&, const TensorObject& x) { return Value(x.tensor.is_leaf()); }},
      {Name("is_cuda"), [](HostState& state, const TensorObject&) { return Value(state.shown_device().is_cuda()); }},
      {Name("is_cpu"), [](HostState& state, const TensorObject&) { return Value(state.shown_device().is_cpu()); }},
      {Name("is_sparse"), [](HostState&, const TensorObject& x) { return Value(x.tensor.is_sparse()); }},
      {Name("is_quantized"), [](HostState&, const TensorObject& x) { return Value(x.tensor.is_quantized()); }},
      {Name("is_mkldnn"), [](HostState&, const TensorObject& x) { return Value(x.tensor.is_mkldnn()); }},
      {Name("is_nested"), [](HostState&, const TensorObject& x) { return Value(x.tensor.is_nested()); }},
      {Name("itemsize"),
       [](HostState&, const TensorObject& x) { return Value(static_cast<int64_t>(x.tensor.itemsize())); }},
      {Name("nbytes"),
       [](HostState&, const TensorObject& x) { return Value(static_cast<int64_t>(x.tensor.nbytes())); }},
  };
  return kProperties;
}

Error unknown_member(HostState& state, Name name, Span span) {
  std::vector<std::string> names = state.method_names();
  std::vector<std::string_view> views(names.begin(), names.end());
  for (auto& [property, read] : properties()) views.push_back(property.text());
  std::string_view nearest = nearest_name(name.text(), views);
  return make_error(DiagnosticKind::unknown_attribute, span, fmt::format("a tensor has no attribute `{}`", name.text()),
                    nearest.empty() ? "" : fmt::format("did you mean `{}`?", nearest));
}

class RowIterator final : public stage::Iterator {
 public:
  RowIterator(HostState& state, std::vector<at::Tensor> rows) : state_(state), rows_(std::move(rows)) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (at_ == rows_.size()) return std::optional<Value>();
    return std::optional<Value>(state_.wrap(rows_[at_++]));
  }

 private:
  HostState& state_;
  std::vector<at::Tensor> rows_;
  size_t at_ = 0;
};

}  // namespace

TensorObject* tensor_object(const Value& value) {
  auto* object = value.if_object();
  if (!object || !*object) return nullptr;
  const stage::Type* type = &(*object)->type();
  bool is_tensor = type == &TensorObject::kType || type == &TensorObject::kParameterType;
  return is_tensor ? static_cast<TensorObject*>(object->get()) : nullptr;
}

Result<Value> array_tensor(Interpreter& interpreter, const Value& value) {
  auto* object = value.if_object();
  if (!object || !(*object)->as_instance() || value.type_name() != "ndarray") return Value();
  return interpreter.get_attribute(value, Name("tensor"), {});
}

Result<Value> TensorObject::get_attribute(Interpreter&, Name name, Span span) {
  auto property = properties().find(name);
  if (property != properties().end()) {
    return guarded(name.text(), span, [&] { return property->second(state_, *this); });
  }
  if (const TensorMethod* method = find_tensor_method(name)) {
    auto self = Value(shared_from_this());
    HostState& state = state_;
    return Value(std::make_shared<stage::BuiltinFunction>(
        name.str(), [&state, self, method](Interpreter& interpreter, CallArgs& args) {
          return (*method)(state, interpreter, *tensor_object(self), args);
        }));
  }
  if (const Callable* callable = state_.tensor_method(name)) {
    return Value(std::make_shared<TorchFunction>(state_, *callable, Value(shared_from_this())));
  }
  return unknown_member(state_, name, span);
}

Result<Value> TensorObject::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  if (const TensorMethod* method = find_tensor_method(name)) return (*method)(state_, interpreter, *this, args);
  if (const Callable* callable = state_.tensor_method(name)) {
    Value self(shared_from_this());
    return callable->call(state_, &self, args);
  }
  Value attribute = TRY(get_attribute(interpreter, name, name_span));
  return interpreter.call(attribute, std::move(args));
}

Status TensorObject::set_attribute(Interpreter&, Name name, Value value, Span span) {
  if (name.text() == "requires_grad" && value.if_bool()) {
    return guarded("requires_grad", span, [&] { tensor.set_requires_grad(*value.if_bool()); });
  }
  const at::Tensor* other = tensor_of(value);
  if (name.text() == "grad" && (other || value.is_none())) {
    return guarded("grad", span, [&] { tensor.mutable_grad() = other ? *other : at::Tensor(); });
  }
  if (name.text() == "data" && other) {
    return guarded("data", span, [&] { tensor.set_data(other->detach()); });  // it stays the same tensor
  }
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("the attribute `{}` of a tensor cannot be set", name.text()));
}

Result<Value> TensorObject::get_item(Interpreter&, const Value& index, Span span) {
  return state_.wrap(TRY(get_index(state_, tensor, index, span)));
}

Status TensorObject::set_item(Interpreter&, const Value& index, Value value, Span span) {
  return set_index(state_, tensor, index, value, span);
}

Result<int64_t> TensorObject::length(Interpreter&, Span span) {
  if (tensor.dim() > 0) return tensor.size(0);
  return make_error(DiagnosticKind::type_error, span, "a 0-dimensional tensor has no length");
}

Result<std::unique_ptr<stage::Iterator>> TensorObject::iterate(Interpreter&, Span span) {
  if (tensor.dim() == 0) {
    return make_error(DiagnosticKind::type_error, span, "a 0-dimensional tensor cannot be iterated over");
  }
  auto rows = TRY(guarded("unbind", span, [&] { return tensor.unbind(0); }));
  return std::unique_ptr<stage::Iterator>(std::make_unique<RowIterator>(state_, std::move(rows)));
}

Result<bool> TensorObject::contains(Interpreter& interpreter, const Value& item, Span span) {
  auto equal = TRY(compare(interpreter, stage::CompareOp::eq, item, span));
  if (!equal) return false;
  return guarded("in", span, [&] { return tensor_of(*equal)->any().item<bool>(); });
}

Result<bool> TensorObject::truth(Interpreter&, Span span) {
  if (tensor.numel() != 1) {
    return make_error(DiagnosticKind::value_error, span,
                      fmt::format("the truth of a tensor with {} elements is ambiguous", tensor.numel()),
                      "use `.any()` or `.all()`");
  }
  return guarded("bool", span, [&] { return at::is_nonzero(tensor); });
}

Result<std::string> TensorObject::repr(Interpreter&) {
  return guarded("repr", {}, [&] { return (is_parameter ? "Parameter containing:\n" : "") + tensor_text(tensor); });
}

Result<Value> DtypeObject::get_attribute(Interpreter&, Name attribute, Span span) {
  if (attribute.text() == "is_floating_point") return Value(at::isFloatingType(scalar));
  if (attribute.text() == "is_complex") return Value(at::isComplexType(scalar));
  if (attribute.text() == "is_signed") return Value(at::isSignedType(scalar));
  if (attribute.text() == "itemsize") return Value(static_cast<int64_t>(c10::elementSize(scalar)));
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("`torch.{}` has no attribute `{}`", name, attribute.text()));
}

Result<Value> DeviceObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() == "type") return Value(c10::DeviceTypeName(device.type(), true));
  if (name.text() == "index") return device.has_index() ? Value(int64_t{device.index()}) : Value();
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("a device has no attribute `{}`", name.text()));
}

Result<std::optional<Value>> DeviceObject::compare(Interpreter&, stage::CompareOp op, const Value& other, Span) {
  auto* second = other.get_if<DeviceObject>();
  if (!second || (op != stage::CompareOp::eq && op != stage::CompareOp::ne)) return std::optional<Value>();
  return std::optional<Value>((device == second->device) == (op == stage::CompareOp::eq));
}

Result<std::optional<Value>> FormatObject::compare(Interpreter&, stage::CompareOp op, const Value& other, Span) {
  auto* second = other.get_if<FormatObject>();
  if (!second || (op != stage::CompareOp::eq && op != stage::CompareOp::ne)) return std::optional<Value>();
  const bool same = is_layout == second->is_layout && code == second->code;
  return std::optional<Value>(same == (op == stage::CompareOp::eq));
}

Result<size_t> DeviceObject::hash(Interpreter&, Span) { return std::hash<at::Device>()(device); }

Result<Value> GeneratorObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() == "manual_seed") {
    Value self(shared_from_this());
    return Value(std::make_shared<stage::BuiltinFunction>(
        "manual_seed", [self, generator = generator](Interpreter&, CallArgs& args) mutable -> Result<Value> {
          auto seed = args.positional.size() == 1 ? args.positional[0].as_index() : std::nullopt;
          if (!seed) return make_error(DiagnosticKind::wrong_arguments, args.span, "`manual_seed` takes one integer");
          generator.set_current_seed(static_cast<uint64_t>(*seed));
          return self;
        }));
  }
  return make_error(DiagnosticKind::unknown_attribute, span,
                    fmt::format("a generator has no attribute `{}`", name.text()));
}

}  // namespace tilepilot::eval
