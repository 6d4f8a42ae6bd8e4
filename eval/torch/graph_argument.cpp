#include "eval/torch/graph_argument.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

using c10::IValue;
using MaybeIValue = std::optional<IValue>;

MaybeIValue enum_value(const std::string& name, std::initializer_list<std::pair<const char*, int64_t>> table) {
  for (auto& [known, value] : table) {
    if (name == known) return IValue(value);
  }
  return std::nullopt;
}

MaybeIValue layout_value(const std::string& name) {
  return enum_value(name, {{"strided", static_cast<int64_t>(c10::Layout::Strided)},
                           {"sparse_coo", static_cast<int64_t>(c10::Layout::Sparse)}});
}

MaybeIValue memory_format_value(const std::string& name) {
  return enum_value(name, {{"contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
                           {"preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
                           {"channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
                           {"channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)}});
}

template <class T>
MaybeIValue number_list(const GraphList& items) {
  c10::List<T> list;
  for (auto& item : items) {
    if (auto* integer = std::get_if<int64_t>(&item.data)) {
      list.push_back(static_cast<T>(*integer));
    } else if (auto* boolean = std::get_if<bool>(&item.data)) {
      list.push_back(static_cast<T>(*boolean));
    } else if (auto* real = std::get_if<double>(&item.data); real && std::is_same_v<T, double>) {
      list.push_back(static_cast<T>(*real));
    } else {
      return std::nullopt;
    }
  }
  return IValue(list);
}

MaybeIValue tensor_list(const GraphList& items, const ArgumentContext& context) {
  c10::List<at::Tensor> list;
  for (auto& item : items) {
    auto* id = item.value_id();
    IValue value = id ? context.value(*id) : IValue();
    if (!value.isTensor()) return std::nullopt;
    list.push_back(value.toTensor());
  }
  return IValue(list);
}

MaybeIValue optional_tensor_list(const GraphList& items, const ArgumentContext& context) {
  c10::List<std::optional<at::Tensor>> list;
  for (auto& item : items) {
    auto* id = item.value_id();
    IValue value = id ? context.value(*id) : IValue();
    if (id && !value.isTensor()) return std::nullopt;
    list.push_back(id ? std::optional(value.toTensor()) : std::nullopt);
  }
  return IValue(list);
}

MaybeIValue list_value(const GraphList& items, const c10::TypePtr& element, const ArgumentContext& context) {
  switch (element->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return number_list<int64_t>(items);
    case c10::TypeKind::FloatType:
      return number_list<double>(items);
    case c10::TypeKind::BoolType:
      return number_list<bool>(items);
    case c10::TypeKind::TensorType:
      return tensor_list(items, context);
    case c10::TypeKind::OptionalType:
      return optional_tensor_list(items, context);
    default:
      return std::nullopt;
  }
}

// `x + 1` with a tensor overload: a tensor of no dimensions that does not take part in type promotion.
IValue wrapped_number(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

MaybeIValue number_value(double number, const c10::TypePtr& type) {
  auto kind = type->kind();
  if (kind == c10::TypeKind::TensorType) return wrapped_number(number);
  if (kind == c10::TypeKind::FloatType || kind == c10::TypeKind::NumberType) return IValue(number);
  return std::nullopt;
}

MaybeIValue number_value(int64_t number, const c10::TypePtr& type) {
  auto kind = type->kind();
  if (kind == c10::TypeKind::TensorType) return wrapped_number(number);
  if (kind == c10::TypeKind::FloatType) return IValue(static_cast<double>(number));
  if (kind == c10::TypeKind::BoolType) return IValue(number != 0);
  if (kind == c10::TypeKind::IntType || kind == c10::TypeKind::SymIntType || kind == c10::TypeKind::NumberType) {
    return IValue(number);
  }
  return std::nullopt;
}

MaybeIValue bool_value(bool value, const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return wrapped_number(value);
  if (type->kind() == c10::TypeKind::BoolType || type->kind() == c10::TypeKind::NumberType) return IValue(value);
  return number_value(static_cast<int64_t>(value), type);
}

// One case an alternative of GraphArgument; the schema's type is `type`, never optional.
struct Converter {
  const c10::TypePtr& type;
  const ArgumentContext& context;

  MaybeIValue operator()(std::monostate) const { return IValue(); }
  MaybeIValue operator()(bool value) const { return bool_value(value, type); }
  MaybeIValue operator()(int64_t value) const {
    if (auto list = type->cast<c10::ListType>())
      return list_value({GraphArgument{value}}, list->getElementType(), context);
    return number_value(value, type);
  }
  MaybeIValue operator()(double value) const { return number_value(value, type); }
  MaybeIValue operator()(const std::string& value) const { return IValue(value); }
  MaybeIValue operator()(ValueRef ref) const { return context.value(ref.id); }
  MaybeIValue operator()(const DtypeName& dtype) const {
    auto known = parse_element_type(dtype.name);
    if (!known) return std::nullopt;
    return IValue(static_cast<int64_t>(context.element_type(*known)));
  }
  MaybeIValue operator()(const DeviceName&) const { return IValue(context.device); }
  MaybeIValue operator()(const LayoutName& layout) const { return layout_value(layout.name); }
  MaybeIValue operator()(const MemoryFormatName& format) const { return memory_format_value(format.name); }
  MaybeIValue operator()(const GraphList& items) const {
    auto list = type->cast<c10::ListType>();
    return list ? list_value(items, list->getElementType(), context) : std::nullopt;
  }
  MaybeIValue operator()(const GraphTuple& tuple) const { return (*this)(tuple.items); }
  MaybeIValue operator()(const GraphDict&) const { return std::nullopt; }
};

}  // namespace

std::optional<IValue> to_ivalue(const GraphArgument& argument, const c10::TypePtr& type,
                                const ArgumentContext& context) {
  if (auto optional = type->cast<c10::OptionalType>()) return to_ivalue(argument, optional->getElementType(), context);
  return std::visit(Converter{type, context}, argument.data);
}

}  // namespace tilepilot::eval
