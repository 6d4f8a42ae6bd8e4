#include "eval/host/signature.h"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/Scalar.h>

#include <algorithm>
#include <map>
#include <set>

#include "eval/host/host_state.h"

namespace tilepilot::eval {

using c10::IValue;
using stage::CallArgs;
using stage::Name;
using stage::Value;

namespace {

ParameterKind list_kind(const c10::Type& element) {
  switch (element.kind()) {
    case c10::TypeKind::TensorType:
      return ParameterKind::tensor_list;
    case c10::TypeKind::OptionalType:
      return ParameterKind::optional_tensor_list;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ParameterKind::integer_list;
    case c10::TypeKind::FloatType:
      return ParameterKind::real_list;
    case c10::TypeKind::BoolType:
      return ParameterKind::boolean_list;
    case c10::TypeKind::NumberType:
      return ParameterKind::scalar_list;
    default:
      return ParameterKind::unsupported;
  }
}

ParameterKind kind_of(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return ParameterKind::tensor;
    case c10::TypeKind::NumberType:
      return ParameterKind::scalar;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ParameterKind::integer;
    case c10::TypeKind::FloatType:
      return ParameterKind::real;
    case c10::TypeKind::BoolType:
      return ParameterKind::boolean;
    case c10::TypeKind::StringType:
      return ParameterKind::string;
    case c10::TypeKind::ScalarTypeType:
      return ParameterKind::dtype;
    case c10::TypeKind::LayoutType:
      return ParameterKind::layout;
    case c10::TypeKind::DeviceObjType:
      return ParameterKind::device;
    case c10::TypeKind::MemoryFormatType:
      return ParameterKind::memory_format;
    case c10::TypeKind::GeneratorType:
      return ParameterKind::generator;
    case c10::TypeKind::ListType:
      return list_kind(*type.expectRef<c10::ListType>().getElementType());
    default:
      return ParameterKind::unsupported;
  }
}

// The second spelling Python accepts: `input` for `self`, and NumPy's names.
std::string_view alias_of(std::string_view name) {
  if (name == "self") return "input";
  if (name == "dim") return "axis";
  if (name == "keepdim") return "keepdims";
  return {};
}

std::string type_spelling(const c10::Argument& argument) {
  std::string text = argument.real_type()->str();
  size_t brackets = text.find("[]");
  if (argument.N() && brackets != std::string::npos) text.insert(brackets + 1, std::to_string(*argument.N()));
  return text;
}

Parameter make_parameter(const c10::Argument& argument) {
  Parameter parameter;
  parameter.name = Name(argument.name());
  std::string_view alias = alias_of(argument.name());
  parameter.alias = alias.empty() ? parameter.name : Name(alias);
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) {
    parameter.optional = true;
    type = optional->getElementType();
  }
  parameter.kind = kind_of(*type);
  parameter.keyword_only = argument.kwarg_only();
  parameter.is_out = argument.is_out();
  parameter.list_size = argument.N().value_or(0);
  parameter.default_value = argument.default_value();
  parameter.type_text = type_spelling(argument);
  return parameter;
}

std::string default_spelling(const IValue& value) {
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isString()) return "'" + value.toStringRef() + "'";
  if (value.isDouble()) {
    std::string text = std::to_string(value.toDouble());
    return text;
  }
  return "...";
}

std::string parameter_spelling(const Parameter& parameter, std::string_view type) {
  std::string_view name = parameter.name.text() == "self" ? "input" : parameter.name.text();
  std::string text = std::string(type) + " " + std::string(name);
  if (parameter.default_value) text += "=" + default_spelling(*parameter.default_value);
  return text;
}

template <class TypeOf>
std::string list_spelling(const std::vector<Parameter>& parameters, TypeOf type_of) {
  std::string text;
  bool keywords = false;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += ", ";
    if (parameter.keyword_only && !keywords) {
      text += "*, ";
      keywords = true;
    }
    text += parameter_spelling(parameter, type_of(parameter));
  }
  return text;
}

// A 0-dimensional tensor may stand for a number.
const at::Tensor* as_zero_dim(const Value& value) {
  const at::Tensor* tensor = tensor_of(value);
  return tensor && tensor->dim() == 0 ? tensor : nullptr;
}

std::optional<int64_t> integer_argument(const Value& value) {
  if (auto* integer = value.if_int()) return *integer;
  if (auto* tensor = as_zero_dim(value); tensor && at::isIntegralType(tensor->scalar_type(), false)) {
    return tensor->item<int64_t>();
  }
  return std::nullopt;
}

std::optional<double> real_argument(const Value& value) {
  if (auto* real = value.if_float()) return *real;
  if (auto* integer = value.if_int()) return static_cast<double>(*integer);
  if (auto* tensor = as_zero_dim(value)) return tensor->item<double>();
  return std::nullopt;
}

std::optional<at::Scalar> scalar_argument(const Value& value) {
  if (auto* real = value.if_float()) return at::Scalar(*real);
  if (auto* integer = value.if_int()) return at::Scalar(*integer);
  if (auto* boolean = value.if_bool()) return at::Scalar(*boolean);
  if (auto* tensor = as_zero_dim(value)) return tensor->item();
  return std::nullopt;
}

std::optional<IValue> tensor_argument(const Value& value, SignatureRules rules) {
  if (const at::Tensor* tensor = tensor_of(value)) return IValue(*tensor);
  if (!rules.numbers_as_tensors) return std::nullopt;
  if (!value.if_float() && !value.if_int() && !value.if_bool()) return std::nullopt;
  at::Tensor wrapped = at::scalar_tensor(*scalar_argument(value), [&] {
    if (value.if_float()) return at::kDouble;
    return value.if_int() ? at::kLong : at::kBool;
  }());
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  return IValue(std::move(wrapped));
}

// A list whose items `convert` gives; nullopt if one does not fit.
template <class Item, class Convert>
std::optional<IValue> list_argument(const Value& value, Convert convert) {
  auto* items = stage::sequence_items(value);
  if (!items) return std::nullopt;
  c10::List<Item> list;
  list.reserve(items->size());
  for (const Value& item : *items) {
    std::optional<Item> converted = convert(item);
    if (!converted) return std::nullopt;
    list.push_back(std::move(*converted));
  }
  return IValue(std::move(list));
}

std::optional<at::Tensor> plain_tensor(const Value& value) {
  const at::Tensor* tensor = tensor_of(value);
  return tensor ? std::optional(*tensor) : std::nullopt;
}

std::optional<IValue> integer_list_argument(const Value& value, int32_t size) {
  if (size > 0) {
    if (auto integer = integer_argument(value)) {
      return IValue(c10::List<int64_t>(std::vector<int64_t>(static_cast<size_t>(size), *integer)));
    }
  }
  return list_argument<int64_t>(value, integer_argument);
}

std::optional<IValue> real_list_argument(const Value& value, int32_t size) {
  if (size > 0 && !stage::sequence_items(value)) {
    if (auto real = real_argument(value)) {
      return IValue(c10::List<double>(std::vector<double>(static_cast<size_t>(size), *real)));
    }
  }
  return list_argument<double>(value, real_argument);
}

std::optional<IValue> optional_tensors_argument(const Value& value) {
  return list_argument<std::optional<at::Tensor>>(value,
                                                  [](const Value& item) -> std::optional<std::optional<at::Tensor>> {
                                                    if (item.is_none()) return std::optional<at::Tensor>();
                                                    if (auto* tensor = tensor_of(item)) return std::optional(*tensor);
                                                    return std::nullopt;
                                                  });
}

std::optional<IValue> dtype_argument(HostState& state, const Value& value) {
  if (auto* dtype = value.get_if<DtypeObject>()) return IValue(static_cast<int64_t>(dtype->scalar));
  auto* object = value.if_object();
  if (!object) return std::nullopt;
  for (auto& [type, scalar] : state.python_types) {
    if (type == *object) return IValue(static_cast<int64_t>(scalar));
  }
  return std::nullopt;
}

std::optional<IValue> format_argument(const Value& value, bool is_layout) {
  auto* format = value.get_if<FormatObject>();
  if (!format || format->is_layout != is_layout) return std::nullopt;
  return IValue(format->code);
}

template <class T>
std::optional<IValue> boxed(std::optional<T> value) {
  return value ? std::optional<IValue>(IValue(std::move(*value))) : std::nullopt;
}

}  // namespace

std::optional<IValue> to_argument(HostState& state, const Parameter& parameter, const Value& value,
                                  SignatureRules rules) {
  if (value.is_none() && parameter.optional) return IValue();
  switch (parameter.kind) {
    case ParameterKind::tensor:
      return tensor_argument(value, rules);
    case ParameterKind::tensor_list:
      return list_argument<at::Tensor>(value, plain_tensor);
    case ParameterKind::optional_tensor_list:
      return optional_tensors_argument(value);
    case ParameterKind::scalar:
      return boxed(scalar_argument(value));
    case ParameterKind::integer:
      return boxed(integer_argument(value));
    case ParameterKind::real:
      return boxed(real_argument(value));
    case ParameterKind::boolean:
      return value.if_bool() ? std::optional<IValue>(*value.if_bool()) : std::nullopt;
    case ParameterKind::string:
      return value.if_string() ? std::optional<IValue>(*value.if_string()) : std::nullopt;
    case ParameterKind::integer_list:
      return integer_list_argument(value, parameter.list_size);
    case ParameterKind::real_list:
      return real_list_argument(value, parameter.list_size);
    case ParameterKind::boolean_list:
      return list_argument<bool>(value, [](const Value& item) {
        return item.if_bool() ? std::optional<bool>(*item.if_bool()) : std::nullopt;
      });
    case ParameterKind::scalar_list:
      return list_argument<at::Scalar>(value, scalar_argument);
    case ParameterKind::dtype:
      return dtype_argument(state, value);
    case ParameterKind::layout:
      return format_argument(value, true);
    case ParameterKind::memory_format:
      return format_argument(value, false);
    case ParameterKind::device:
      if (!value.get_if<DeviceObject>() && !value.if_string() && !value.if_int()) return std::nullopt;
      return IValue(state.device());
    case ParameterKind::generator:
      if (auto* generator = value.get_if<GeneratorObject>()) return IValue(generator->generator);
      return std::nullopt;
    case ParameterKind::unsupported:
      return std::nullopt;
  }
  return std::nullopt;
}

Signature::Signature(const c10::FunctionSchema& schema, SignatureRules rules) : rules_(rules) {
  for (const c10::Argument& argument : schema.arguments()) {
    Parameter parameter = make_parameter(argument);
    has_out_ |= parameter.is_out;
    supported_ &= parameter.kind != ParameterKind::unsupported || parameter.default_value.has_value();
    if (!parameter.keyword_only) ++positional_;
    parameters_.push_back(std::move(parameter));
  }
  is_method_ = !parameters_.empty() && parameters_[0].kind == ParameterKind::tensor &&
               (parameters_[0].name.text() == "self" || parameters_[0].name.text() == "input");
  auto takes_varargs = [&](size_t index) {
    return positional_ == index + 1 && parameters_[index].kind == ParameterKind::integer_list &&
           parameters_[index].list_size == 0;
  };
  varargs_function_ = takes_varargs(0);
  varargs_method_ = is_method_ && takes_varargs(1);
  std::string_view name = schema.name();
  if (name.substr(0, 6) == "aten::") name.remove_prefix(6);
  text_ =
      std::string(name) + "(" +
      list_spelling(parameters_, [](const Parameter& parameter) -> std::string_view { return parameter.type_text; }) +
      ")";
}

size_t Signature::index_of(std::string_view name) const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name.text() == name) return i;
  }
  return npos;
}

namespace {

// Python's bindings write None where ATen's default is the empty list (stride=None).
bool stands_for_default(const Parameter& parameter) {
  return !parameter.optional && parameter.default_value && parameter.default_value->isIntList() &&
         parameter.default_value->toIntList().empty();
}

}  // namespace

bool Signature::matches_varargs(const Value* self, const CallArgs& args) const {
  if (!(self ? varargs_method_ : varargs_function_)) return false;
  return !args.positional.empty() && integer_argument(args.positional[0]).has_value();
}

bool Signature::match(HostState& state, const Value* self, const CallArgs& args, torch::jit::Stack& stack) const {
  bool varargs = matches_varargs(self, args);
  size_t offset = self ? 1 : 0;
  size_t given = args.positional.size() + offset;
  if (given > positional_ && !varargs) return false;
  size_t keywords_used = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const Value* value = nullptr;
    if (i < offset) {
      value = self;
    } else if (varargs && i == offset) {
      auto list = list_argument<int64_t>(stage::make_list(args.positional), integer_argument);
      if (!list) return false;
      stack.push_back(std::move(*list));
      continue;
    } else if (i < given && !parameter.keyword_only && !varargs) {
      value = &args.positional[i - offset];
    } else {
      for (auto& [name, keyword] : args.keywords) {
        if (name == parameter.name || name == parameter.alias) value = &keyword;
      }
      if (value) ++keywords_used;
    }
    if (!value) {
      if (!parameter.default_value) return false;
      // Made where all tensors live, rather than made by the processor and then moved.
      const bool is_place = parameter.kind == ParameterKind::device && !state.device().is_cpu();
      stack.push_back(is_place ? IValue(state.device()) : *parameter.default_value);
      continue;
    }
    if (value->is_none() && stands_for_default(parameter)) {
      stack.push_back(*parameter.default_value);
      continue;
    }
    auto converted = to_argument(state, parameter, *value, rules_);
    if (!converted) return false;
    stack.push_back(std::move(*converted));
  }
  if (keywords_used == args.keywords.size()) return true;
  // `out=None` and, for functions that make tensors, `requires_grad` are Python's own parameters.
  for (auto& [name, value] : args.keywords) {
    bool is_none_out = name.text() == "out" && value.is_none();
    bool is_grad = name.text() == "requires_grad" && index_of("pin_memory") != npos && value.if_bool();
    keywords_used += is_none_out || is_grad;
  }
  return keywords_used == args.keywords.size();
}

namespace {

// Types as PyTorch's generator of bindings spells them when it sorts signatures by their text.
std::string binding_spelling(const std::string& type) {
  static const std::map<std::string, std::string, std::less<>> kNames = {
      {"int", "int64_t"}, {"float", "double"}, {"str", "c10::string_view"}};
  bool optional = !type.empty() && type.back() == '?';
  std::string base = optional ? type.substr(0, type.size() - 1) : type;
  std::string suffix = optional ? "?" : "";
  size_t bracket = base.find('[');
  if (bracket == std::string::npos) {
    auto name = kNames.find(base);
    return (name == kNames.end() ? base : name->second) + suffix;
  }
  static const std::map<std::string, std::string, std::less<>> kLists = {
      {"int", "IntArrayRef"},   {"SymInt", "SymIntArrayRef"},  {"Tensor", "TensorList"},
      {"Scalar", "ScalarList"}, {"float", "ArrayRef<double>"}, {"bool", "::std::array<bool>"}};
  auto list = kLists.find(base.substr(0, bracket));
  std::string size = base.substr(bracket) == "[]" ? "" : base.substr(bracket);
  return (list == kLists.end() ? base : list->second + size) + suffix;
}

// Whether an argument of type `a` is to be tried after one of type `b`.
bool is_type_smaller(const std::string& a, const std::string& b) {
  return (a == "Scalar" && b == "Tensor") || (a == "Scalar?" && b == "Tensor?") ||
         (a == "int[]" && (b == "int" || b == "int?")) || (a == "Tensor[]" && b.find("[]") != std::string::npos) ||
         (a == "SymInt[]" && b == "int[]") || ((a == "SymInt" || a == "int") && b == "Tensor");
}

bool is_smaller(const Signature& a, const Signature& b) {
  std::vector<const Parameter*> first, second;
  for (const Parameter& parameter : a.parameters()) {
    if (!parameter.is_out) first.push_back(&parameter);
  }
  for (const Parameter& parameter : b.parameters()) {
    if (!parameter.is_out) second.push_back(&parameter);
  }
  if (first.size() != second.size()) return false;
  bool equal = true;
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i]->type_text == second[i]->type_text) continue;
    equal = false;
    if (!is_type_smaller(first[i]->type_text, second[i]->type_text)) return false;
  }
  return !equal;
}

}  // namespace

void sort_overloads(std::vector<Signature*>& overloads) {
  auto key = [](const Signature* signature) {
    return list_spelling(signature->parameters(),
                         [](const Parameter& parameter) { return binding_spelling(parameter.type_text); });
  };
  std::stable_sort(overloads.begin(), overloads.end(), [&](auto* a, auto* b) { return key(a) < key(b); });
  std::map<size_t, std::set<size_t>> larger;
  for (size_t i = 0; i < overloads.size(); ++i) {
    for (size_t j = 0; j < overloads.size(); ++j) {
      if (is_smaller(*overloads[i], *overloads[j])) larger[i].insert(j);
    }
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < overloads.size(); ++i) {
    if (!larger.count(i)) order.push_back(i);
  }
  for (size_t done = 0; done < order.size(); ++done) {
    for (auto entry = larger.begin(); entry != larger.end();) {
      entry->second.erase(order[done]);
      if (entry->second.empty()) {
        order.push_back(entry->first);
        entry = larger.erase(entry);
      } else {
        ++entry;
      }
    }
  }
  std::vector<Signature*> sorted;
  for (size_t index : order) sorted.push_back(overloads[index]);
  overloads = std::move(sorted);
}

}  // namespace tilepilot::eval
