// Sequential, ModuleList, ModuleDict, ParameterList and ParameterDict.
#include <fmt/format.h>

#include <algorithm>

#include "eval/host/layers/module.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Name;
using stage::Value;

namespace {

Error bad_arguments(NnModule& self, std::string_view what, Span span) {
  return make_error(DiagnosticKind::wrong_arguments, span, fmt::format("`{}` takes {}", self.type_name(), what));
}

Value self_of(NnModule& self) { return Value(self.shared_from_this()); }

// Adds one module, or to a ParameterList one tensor, which becomes a parameter.
Status add_item(NnModule& self, Name name, const Value& value, Span span) {
  if (!self.native()->holds_parameters) {
    if (!as_module(value) && !value.is_none()) return bad_arguments(self, "modules", span);
    self.register_module(name, value);
    return {};
  }
  TensorObject* tensor = tensor_object(value);
  if (!tensor) return bad_arguments(self, "tensors", span);
  self.register_parameter(name, tensor->is_parameter ? value : self.state().wrap_parameter(tensor->tensor));
  return {};
}

Status append_item(NnModule& self, const Value& value, Span span) {
  return add_item(self, Name(std::to_string(self.items().size())), value, span);
}

Status extend_items(Interpreter& interpreter, NnModule& self, const Value& values, Span span) {
  for (const Value& value : TRY(interpreter.to_vector(values, span))) TRY(append_item(self, value, span));
  return {};
}

// From a mapping, or an iterable of pairs.
Status update_items(Interpreter& interpreter, NnModule& self, const Value& values, Span span) {
  bool is_list = stage::sequence_items(values) != nullptr;
  for (const Value& item : TRY(interpreter.to_vector(values, span))) {
    const std::vector<Value>* pair = is_list ? stage::sequence_items(item) : nullptr;
    const Value& key = pair && pair->size() == 2 ? (*pair)[0] : item;
    if (!key.if_string()) return bad_arguments(self, "a mapping from names", span);
    Value value = pair ? (*pair)[1] : TRY(interpreter.get_item(values, key, span));
    TRY(add_item(self, Name(*key.if_string()), value, span));
  }
  return {};
}

bool is_mapping(const Value& value) { return value.if_object() && value.type_name().find("ict") != std::string::npos; }

Result<Value> init_sequence(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  self.initialised = true;
  bool variadic = self.native()->name == "Sequential";
  if (variadic && !(args.positional.size() == 1 && is_mapping(args.positional[0]))) {
    for (const Value& value : args.positional) TRY(append_item(self, value, args.span));
  } else if (variadic) {
    TRY(update_items(interpreter, self, args.positional[0], args.span));
  } else if (!args.positional.empty()) {
    TRY(extend_items(interpreter, self, args.positional[0], args.span));
  } else if (!args.keywords.empty()) {
    TRY(extend_items(interpreter, self, args.keywords[0].second, args.span));
  }
  return Value();
}

Result<Value> append(Interpreter&, NnModule& self, CallArgs& args) {
  if (args.positional.size() != 1) return bad_arguments(self, "one item in `append`", args.span);
  TRY(append_item(self, args.positional[0], args.span));
  return self_of(self);
}

Result<Value> extend(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  if (args.positional.size() != 1) return bad_arguments(self, "one iterable in `extend`", args.span);
  TRY(extend_items(interpreter, self, args.positional[0], args.span));
  return self_of(self);
}

void renumber(NnModule& self) {
  for (size_t i = 0; i < self.items().size(); ++i) self.items()[i].name = Name(std::to_string(i));
}

Result<Value> insert(Interpreter&, NnModule& self, CallArgs& args) {
  auto index = args.positional.size() == 2 ? args.positional[0].as_index() : std::nullopt;
  if (!index) return bad_arguments(self, "an index and an item in `insert`", args.span);
  auto count = static_cast<int64_t>(self.items().size());
  int64_t position = std::clamp(*index < 0 ? *index + count : *index, int64_t{0}, count);
  TRY(append_item(self, args.positional[1], args.span));
  auto& items = self.items();
  std::rotate(items.begin() + position, items.end() - 1, items.end());
  renumber(self);
  return Value();
}

const ModuleMethodRow kSequenceMethods[] = {
    {"__init__", init_sequence},
    {"append", append},
    {"extend", extend},
    {"insert", insert},
};

Result<Value> init_mapping(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  self.initialised = true;
  if (!args.positional.empty()) TRY(update_items(interpreter, self, args.positional[0], args.span));
  return Value();
}

Result<Value> update(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  if (args.positional.size() != 1) return bad_arguments(self, "a mapping in `update`", args.span);
  TRY(update_items(interpreter, self, args.positional[0], args.span));
  return Value();
}

Result<Value> keys(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> names;
  for (const NnModule::Entry& entry : self.items()) names.push_back(Value(entry.name.text()));
  return make_iterator(interpreter, std::move(names), args.span);
}

Result<Value> values(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> found;
  for (const NnModule::Entry& entry : self.items()) found.push_back(entry.value);
  return make_iterator(interpreter, std::move(found), args.span);
}

Result<Value> items(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> pairs;
  for (const NnModule::Entry& entry : self.items()) {
    pairs.push_back(stage::make_tuple({Value(entry.name.text()), entry.value}));
  }
  return make_iterator(interpreter, std::move(pairs), args.span);
}

const ModuleMethodRow kMappingMethods[] = {
    {"__init__", init_mapping}, {"update", update}, {"keys", keys}, {"values", values}, {"items", items},
};

}  // namespace

std::span<const ModuleMethodRow> sequence_methods() { return kSequenceMethods; }
std::span<const ModuleMethodRow> mapping_methods() { return kMappingMethods; }

Result<Value> sequential_forward(Interpreter& interpreter, NnModule& module, CallArgs& args) {
  if (args.positional.size() != 1 || !args.keywords.empty()) {
    return bad_arguments(module, "one input in `forward`", args.span);
  }
  Value value = args.positional[0];
  for (const NnModule::Entry& entry : module.modules()) {
    CallArgs inner;
    inner.positional.push_back(std::move(value));
    inner.span = args.span;
    value = TRY(interpreter.call(entry.value, std::move(inner)));
  }
  return value;
}

namespace {

Result<int64_t> slice_bound(const Value& value, int64_t otherwise, int64_t count, Span span) {
  if (value.is_none()) return otherwise;
  auto index = value.as_index();
  if (!index) return make_error(DiagnosticKind::type_error, span, "slice indices must be integers or `None`");
  return std::clamp(*index < 0 ? *index + count : *index, int64_t{0}, count);
}

}  // namespace

Result<Value> get_sequence_item(Interpreter& interpreter, NnModule& module, const Value& index, Span span) {
  auto& items = module.items();
  auto count = static_cast<int64_t>(items.size());
  if (auto* slice = index.get_if<stage::SliceObject>()) {
    int64_t step = slice->step.is_none() ? 1 : slice->step.as_index().value_or(0);
    if (step < 1) return make_error(DiagnosticKind::value_error, span, "the step of this slice must be positive");
    int64_t start = TRY(slice_bound(slice->start, 0, count, span));
    int64_t stop = TRY(slice_bound(slice->stop, count, count, span));
    std::vector<Value> chosen;
    for (int64_t i = start; i < stop; i += step) chosen.push_back(items[static_cast<size_t>(i)].value);
    CallArgs args;
    args.span = span;
    bool variadic = module.native()->name == "Sequential";
    args.positional = variadic ? std::move(chosen) : std::vector<Value>{stage::make_list(std::move(chosen))};
    return interpreter.call(module.class_object(), std::move(args));
  }
  auto position = index.as_index();
  if (auto* key = index.if_string()) {
    if (const NnModule::Entry* entry = NnModule::find(items, Name(*key))) return entry->value;
  }
  if (position && *position < 0) *position += count;
  if (!position || *position < 0 || *position >= count) {
    return make_error(DiagnosticKind::index_error, span,
                      fmt::format("the index is outside this `{}` of {}", module.type_name(), count));
  }
  return items[static_cast<size_t>(*position)].value;
}

}  // namespace tilepilot::eval
