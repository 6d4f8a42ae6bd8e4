// Native layers at work: the constructor's arguments are matched and kept, weights created, and forward finds by name
// what its function needs.
#include <fmt/format.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "eval/host/edge.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::Name;
using stage::Value;

namespace {

Signature parse_signature(const std::string& text) {
  return Signature(torch::jit::parseSchema(text + " -> Tensor"), SignatureRules{});
}

Error wrong_inputs(std::string_view layer, const std::string& signature, Span span) {
  return make_error(DiagnosticKind::no_matching_overload, span,
                    fmt::format("the arguments do not fit `forward` of `{}`", layer),
                    fmt::format("it takes `{}`", signature));
}

}  // namespace

LayerConstructor::LayerConstructor(HostState& state, const LayerRow& row)
    : row_(row), signature_(parse_signature(row.constructor)) {
  if (row.functional) bind_functional(state);
  if (row.forward_signature) forward_signature_.emplace(parse_signature(row.forward_signature));
}

void LayerConstructor::bind_functional(HostState& state) {
  const Callable* callable = state.functional(Name(row_.functional));
  TORCH_INTERNAL_ASSERT(callable, "no function ", row_.functional);
  // Of several overloads, the one that has all of the constructor's parameters; they differ in types, not names.
  functional_ = callable->overloads()[0].get();
  auto& parameters = functional_->signature.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::string_view name = parameters[i].name.text();
    size_t in_config = signature_.index_of(name);
    bool is_tensor = parameters[i].kind == ParameterKind::tensor;
    if (i < static_cast<size_t>(row_.inputs)) {
      sources_.push_back({Source::Kind::input, {}, i});
    } else if (name == "training") {
      sources_.push_back({Source::Kind::training});
    } else if (is_tensor) {
      sources_.push_back({Source::Kind::tensor, parameters[i].name});
    } else if (in_config != Signature::npos) {
      sources_.push_back({Source::Kind::config, {}, in_config});
    } else {
      TORCH_INTERNAL_ASSERT(parameters[i].default_value, row_.constructor, " gives no ", name);
      sources_.push_back({Source::Kind::constant, {}, i});
    }
  }
}

Result<Value> LayerConstructor::forward_by_name(HostState& state, NnModule& module, const CallArgs& args) const {
  auto& parameters = functional_->signature.parameters();
  auto inputs = static_cast<size_t>(row_.inputs);
  if (args.positional.size() + args.keywords.size() != inputs) {
    return wrong_inputs(module.type_name(), fmt::format("{} tensors", inputs), args.span);
  }
  torch::jit::Stack stack;
  stack.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Source& source = sources_[i];
    if (source.kind == Source::Kind::input) {
      const Value* value = i < args.positional.size() ? &args.positional[i] : args.keyword(parameters[i].name.text());
      auto converted = value ? to_argument(state, parameters[i], *value, {}) : std::nullopt;
      if (!converted) return wrong_inputs(module.type_name(), functional_->signature.text(), args.span);
      stack.push_back(std::move(*converted));
    } else if (source.kind == Source::Kind::tensor) {
      const NnModule::Entry* entry = NnModule::find(module.parameters(), source.name);
      if (!entry) entry = NnModule::find(module.buffers(), source.name);
      const at::Tensor* tensor = entry ? tensor_of(entry->value) : nullptr;
      stack.push_back(tensor ? c10::IValue(*tensor) : c10::IValue());
    } else if (source.kind == Source::Kind::config) {
      stack.push_back(module.config[source.index]);
    } else if (source.kind == Source::Kind::training) {
      stack.push_back(module.training());
    } else {
      stack.push_back(*parameters[source.index].default_value);
    }
  }
  TRY(guarded(row_.functional, args.span, [&] { functional_->run(stack, state.is_script()); }));
  return to_value(state, stack[0], args.positional.empty() ? nullptr : &args.positional[0]);
}

Result<Value> LayerConstructor::forward(HostState& state, NnModule& module, const CallArgs& args) const {
  if (functional_) return forward_by_name(state, module, args);
  torch::jit::Stack inputs;
  if (!forward_signature_->match(state, nullptr, args, inputs)) {
    return wrong_inputs(module.type_name(), forward_signature_->text(), args.span);
  }
  c10::IValue result = TRY(guarded(module.type_name(), args.span, [&] {
    return row_.forward(module, Arguments(signature_, module.config), Arguments(*forward_signature_, inputs));
  }));
  return to_value(state, result, args.positional.empty() ? nullptr : &args.positional[0]);
}

c10::IValue run_functional(NnModule& module, std::string_view name, torch::jit::Stack arguments) {
  HostState& state = module.state();
  state.functional(stage::Name(name))->overloads()[0]->run(arguments, state.is_script());
  return arguments[0];
}

}  // namespace tilepilot::eval
