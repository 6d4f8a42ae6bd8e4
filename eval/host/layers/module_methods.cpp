// The methods of nn.Module.
#include <fmt/format.h>

#include <unordered_set>

#include "compiler/stage/python/modules/copying.h"
#include "eval/host/edge.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Interpreter;
using stage::Name;
using stage::Value;

Result<Value> make_iterator(Interpreter& interpreter, std::vector<Value> items, Span span) {
  Value list = stage::make_list(std::move(items));
  Value* iter = interpreter.find_builtin("iter");
  if (!iter) return list;
  CallArgs args;
  args.positional.push_back(std::move(list));
  args.span = span;
  return interpreter.call(*iter, std::move(args));
}

namespace {

Error bad_arguments(std::string_view method, Span span) {
  return make_error(DiagnosticKind::wrong_arguments, span, fmt::format("the arguments do not fit `{}`", method));
}

const Value* argument(const CallArgs& args, size_t index, std::string_view name) {
  return index < args.positional.size() ? &args.positional[index] : args.keyword(name);
}

bool flag(const CallArgs& args, size_t index, std::string_view name, bool otherwise) {
  const Value* value = argument(args, index, name);
  return value && value->if_bool() ? *value->if_bool() : otherwise;
}

Value self_of(NnModule& self) { return Value(self.shared_from_this()); }

Value pair(const std::string& name, const Value& value) { return stage::make_tuple({Value(name), value}); }

std::string joined(const std::string& path, Name name) { return path.empty() ? name.str() : path + "." + name.str(); }

// Parameters or buffers of a module and, if asked, of those below it, each once.
std::vector<std::pair<std::string, Value>> tensors_of(NnModule& self, bool buffers, bool recurse) {
  std::vector<std::pair<std::string, Value>> out;
  std::unordered_set<const void*> seen;
  for (const NamedModule& entry : all_modules(self_of(self))) {
    if (!recurse && !entry.path.empty()) break;
    for (const NnModule::Entry& item : buffers ? entry.module().buffers() : entry.module().parameters()) {
      auto* object = item.value.if_object();
      if (object && seen.insert(object->get()).second) out.emplace_back(joined(entry.path, item.name), item.value);
    }
  }
  return out;
}

Result<Value> list_tensors(Interpreter& interpreter, NnModule& self, const CallArgs& args, bool buffers) {
  std::vector<Value> items;
  for (auto& [name, value] : tensors_of(self, buffers, flag(args, 0, "recurse", true))) items.push_back(value);
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> list_named_tensors(Interpreter& interpreter, NnModule& self, const CallArgs& args, bool buffers) {
  const Value* prefix = argument(args, 0, "prefix");
  std::string start = prefix && prefix->if_string() && !prefix->if_string()->empty() ? *prefix->if_string() + "." : "";
  std::vector<Value> items;
  for (auto& [name, value] : tensors_of(self, buffers, flag(args, 1, "recurse", true))) {
    items.push_back(pair(start + name, value));
  }
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> init(Interpreter&, NnModule& self, CallArgs&) {
  self.initialised = true;
  return Value();
}

Result<Value> parameters(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  return list_tensors(interpreter, self, args, false);
}

Result<Value> named_parameters(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  return list_named_tensors(interpreter, self, args, false);
}

Result<Value> buffers(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  return list_tensors(interpreter, self, args, true);
}

Result<Value> named_buffers(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  return list_named_tensors(interpreter, self, args, true);
}

Result<Value> children(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> items;
  for (const NnModule::Entry& entry : self.modules()) {
    if (as_module(entry.value)) items.push_back(entry.value);
  }
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> named_children(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> items;
  for (const NnModule::Entry& entry : self.modules()) {
    if (as_module(entry.value)) items.push_back(pair(entry.name.str(), entry.value));
  }
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> modules(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> items;
  for (const NamedModule& entry : all_modules(self_of(self))) items.push_back(entry.value);
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> named_modules(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> items;
  for (const NamedModule& entry : all_modules(self_of(self))) items.push_back(pair(entry.path, entry.value));
  return make_iterator(interpreter, std::move(items), args.span);
}

Result<Value> state_dict(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  std::vector<Value> items;
  for (NamedTensor& entry : named_tensors(self_of(self))) {
    items.push_back(pair(entry.name, self.state().wrap(entry.tensor.detach())));
  }
  Value list = stage::make_list(std::move(items));
  Value* dict = interpreter.find_builtin("dict");
  if (!dict) return list;
  CallArgs inner;
  inner.positional.push_back(std::move(list));
  inner.span = args.span;
  return interpreter.call(*dict, std::move(inner));
}

Result<Value> load_state_dict(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  const Value* given = argument(args, 0, "state_dict");
  if (!given) return bad_arguments("load_state_dict", args.span);
  std::vector<NamedTensor> values;
  for (const Value& key : TRY(interpreter.to_vector(*given, args.span))) {
    Value value = TRY(interpreter.get_item(*given, key, args.span));
    const at::Tensor* tensor = tensor_of(value);
    if (!key.if_string() || !tensor) return bad_arguments("load_state_dict", args.span);
    values.push_back({*key.if_string(), *tensor});
  }
  TRY(load_tensors(self_of(self), values));
  return Value();
}

Result<Value> register_buffer(Interpreter&, NnModule& self, CallArgs& args) {
  const Value* name = argument(args, 0, "name");
  const Value* tensor = argument(args, 1, "tensor");
  bool fits = name && name->if_string() && tensor && (tensor->is_none() || tensor_of(*tensor));
  if (!fits) return bad_arguments("register_buffer", args.span);
  self.register_buffer(Name(*name->if_string()), *tensor, flag(args, 2, "persistent", true));
  return Value();
}

Result<Value> register_parameter(Interpreter&, NnModule& self, CallArgs& args) {
  const Value* name = argument(args, 0, "name");
  const Value* value = argument(args, 1, "param");
  bool fits = name && name->if_string() && value &&
              (value->is_none() || (tensor_object(*value) && tensor_object(*value)->is_parameter));
  if (!fits) return bad_arguments("register_parameter", args.span);
  self.register_parameter(Name(*name->if_string()), *value);
  return Value();
}

Result<Value> add_module(Interpreter&, NnModule& self, CallArgs& args) {
  const Value* name = argument(args, 0, "name");
  const Value* module = argument(args, 1, "module");
  bool fits = name && name->if_string() && module && (module->is_none() || as_module(*module));
  if (!fits) return bad_arguments("add_module", args.span);
  self.register_module(Name(*name->if_string()), *module);
  return Value();
}

Result<Value> get_submodule(Interpreter&, NnModule& self, CallArgs& args) {
  const Value* target = argument(args, 0, "target");
  if (!target || !target->if_string()) return bad_arguments("get_submodule", args.span);
  for (const NamedModule& entry : all_modules(self_of(self))) {
    if (entry.path == *target->if_string()) return entry.value;
  }
  return make_error(DiagnosticKind::unknown_attribute, args.span,
                    fmt::format("there is no submodule `{}`", *target->if_string()));
}

// get_parameter("net.0.weight") and get_buffer.
template <bool buffers>
Result<Value> get_tensor(Interpreter&, NnModule& self, CallArgs& args) {
  const Value* target = argument(args, 0, "target");
  if (!target || !target->if_string()) return bad_arguments(buffers ? "get_buffer" : "get_parameter", args.span);
  for (auto& [name, value] : tensors_of(self, buffers, true)) {
    if (name == *target->if_string()) return value;
  }
  return make_error(DiagnosticKind::unknown_attribute, args.span,
                    fmt::format("there is no {} `{}`", buffers ? "buffer" : "parameter", *target->if_string()));
}

// copy.deepcopy: weights, submodules and attributes are copied, the memo keeps what is shared shared.
Result<Value> deep_copy(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  auto memo = stage::memo_of(args);
  auto made = std::make_shared<NnModule>(self.state(), self.class_object(), self.native());
  TRY(stage::remember_copy(interpreter, *memo, self, Value(made), args.span));
  made->constructor = self.constructor;
  made->config = self.config;
  made->initialised = self.initialised;
  std::pair<NnModule::Entries*, NnModule::Entries*> entries[] = {{&self.parameters(), &made->parameters()},
                                                                 {&self.buffers(), &made->buffers()},
                                                                 {&self.modules(), &made->modules()}};
  for (auto& [from, to] : entries) {
    for (NnModule::Entry entry : NnModule::Entries(*from)) {
      entry.value = TRY(stage::deep_copy(interpreter, entry.value, memo, args.span));
      to->push_back(std::move(entry));
    }
  }
  for (Name name : std::vector<Name>(self.attributes().names())) {
    made->attributes().set(name, TRY(stage::deep_copy(interpreter, *self.attributes().find(name), memo, args.span)));
  }
  return Value(std::move(made));
}

Result<Value> train(Interpreter&, NnModule& self, CallArgs& args) {
  set_training(self_of(self), flag(args, 0, "mode", true));
  return self_of(self);
}

Result<Value> eval_mode(Interpreter&, NnModule& self, CallArgs&) {
  set_training(self_of(self), false);
  return self_of(self);
}

Result<Value> apply(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  const Value* function = argument(args, 0, "fn");
  if (!function) return bad_arguments("apply", args.span);
  for (const NnModule::Entry& entry : NnModule::Entries(self.modules())) {
    if (NnModule* child = as_module(entry.value)) TRY(apply(interpreter, *child, args));
  }
  CallArgs inner;
  inner.positional.push_back(self_of(self));
  inner.span = args.span;
  TRY(interpreter.call(*function, std::move(inner)));
  return self_of(self);
}

// Gives every floating-point weight another type, in place: the objects stay the same.
Result<Value> convert(NnModule& self, at::ScalarType type, Span span) {
  at::NoGradGuard weights_are_only_set;
  TRY(guarded("to", span, [&] {
    for (const NamedModule& entry : all_modules(self_of(self))) {
      for (NnModule::Entries* entries : {&entry.module().parameters(), &entry.module().buffers()}) {
        for (NnModule::Entry& item : *entries) {
          TensorObject* object = tensor_object(item.value);
          if (!object || !object->tensor.is_floating_point()) continue;
          bool wanted = object->tensor.requires_grad();
          object->tensor = object->tensor.to(type).set_requires_grad(wanted);
        }
      }
    }
  }));
  return self_of(self);
}

Result<Value> to(Interpreter&, NnModule& self, CallArgs& args) {
  for (auto& [name, value] : args.keywords) {
    if (name.text() == "dtype") args.positional.push_back(value);
  }
  for (const Value& value : args.positional) {
    if (auto* dtype = value.get_if<DtypeObject>()) return convert(self, dtype->scalar, args.span);
    if (auto* tensor = tensor_of(value)) return convert(self, tensor->scalar_type(), args.span);
  }
  return self_of(self);
}

template <at::ScalarType type>
Result<Value> convert_to(Interpreter&, NnModule& self, CallArgs& args) {
  return convert(self, type, args.span);
}

Result<Value> itself(Interpreter&, NnModule& self, CallArgs&) { return self_of(self); }

Result<Value> requires_grad(Interpreter&, NnModule& self, CallArgs& args) {
  bool wanted = flag(args, 0, "requires_grad", true);
  for (auto& [name, value] : tensors_of(self, false, true)) tensor_object(value)->tensor.set_requires_grad(wanted);
  return self_of(self);
}

Result<Value> nothing(Interpreter&, NnModule&, CallArgs&) { return Value(); }

Result<Value> reset_parameters(Interpreter&, NnModule& self, CallArgs& args) {
  if (!self.constructor || !self.constructor->row().reset) {
    return make_error(DiagnosticKind::unknown_attribute, args.span,
                      fmt::format("`{}` has no `reset_parameters`", self.type_name()));
  }
  at::NoGradGuard weights_are_only_set;
  TRY(guarded("reset_parameters", args.span,
              [&] { self.constructor->row().reset(self, Arguments(self.constructor->signature(), self.config)); }));
  return Value();
}

const ModuleMethodRow kMethods[] = {
    {"__init__", init},
    {"parameters", parameters},
    {"named_parameters", named_parameters},
    {"buffers", buffers},
    {"named_buffers", named_buffers},
    {"children", children},
    {"named_children", named_children},
    {"modules", modules},
    {"named_modules", named_modules},
    {"state_dict", state_dict},
    {"load_state_dict", load_state_dict},
    {"register_buffer", register_buffer},
    {"register_parameter", register_parameter},
    {"add_module", add_module},
    {"register_module", add_module},
    {"get_submodule", get_submodule},
    {"get_parameter", get_tensor<false>},
    {"get_buffer", get_tensor<true>},
    {"__deepcopy__", deep_copy},
    {"train", train},
    {"eval", eval_mode},
    {"apply", apply},
    {"to", to},
    {"float", convert_to<at::kFloat>},
    {"double", convert_to<at::kDouble>},
    {"half", convert_to<at::kHalf>},
    {"bfloat16", convert_to<at::kBFloat16>},
    {"cuda", itself},
    {"cpu", itself},
    {"requires_grad_", requires_grad},
    {"zero_grad", nothing},
    {"reset_parameters", reset_parameters},
    {"flatten_parameters", nothing},
};

}  // namespace

std::span<const ModuleMethodRow> module_methods() { return kMethods; }

}  // namespace tilepilot::eval
