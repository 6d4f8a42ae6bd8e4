// torch.nn: its classes, and the namespaces functional and init whose names are resolved when first asked for.
#include <fmt/format.h>

#include "compiler/stage/python/objects/native.h"
#include "eval/host/edge.h"
#include "eval/host/embedded_python.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

using stage::CallArgs;
using stage::ClassObject;
using stage::Interpreter;
using stage::Name;
using stage::Value;

namespace {

using ClassRef = std::shared_ptr<ClassObject>;

ClassRef make_class(std::string_view name, const ClassRef& base) {
  auto made = std::make_shared<ClassObject>();
  made->name = Name(name);
  made->resolution_order.push_back(made.get());
  if (base) {
    made->bases.push_back(base);
    for (ClassObject* ancestor : base->resolution_order) made->resolution_order.push_back(ancestor);
  }
  return made;
}

// A method of class Module or of a native class: the first argument must be such an instance.
Value method(std::string name, ModuleMethod body) {
  return std::make_shared<stage::BuiltinFunction>(
      name, [name, body](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
        Value self = args.positional.empty() ? Value() : args.positional[0];
        NnModule* module = as_module(self);
        if (!module) {
          return make_error(DiagnosticKind::type_error, args.span, fmt::format("`{}` needs an nn.Module", name));
        }
        args.positional.erase(args.positional.begin());
        if (!args.positional_spans.empty()) args.positional_spans.erase(args.positional_spans.begin());
        return body(interpreter, *module, args);
      });
}

void add_methods(ClassObject& target, std::span<const ModuleMethodRow> rows) {
  for (const ModuleMethodRow& row : rows) target.members.set(Name(row.name), method(row.name, row.body));
}

// Arguments of a constructor become attributes, as in PyTorch, unless they are weights or where to put them.
void publish_config(NnModule& self, const LayerConstructor& constructor) {
  auto& parameters = constructor.signature().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::string_view name = parameters[i].name.text();
    bool hidden = name == "bias" || name == "device" || name == "dtype" || name[0] == '_';
    if (hidden || parameters[i].kind == ParameterKind::tensor) continue;
    Value value = to_value(self.state(), self.config[i]);
    if (parameters[i].kind == ParameterKind::integer_list) {
      if (auto* items = stage::sequence_items(value)) value = stage::make_tuple(*items);
    }
    self.attributes().set(parameters[i].name, std::move(value));
  }
}

// Pools keep sizes as they were passed, one number for all axes too.
bool keeps_what_was_passed(std::string_view layer) {
  return layer.starts_with("MaxPool") || layer.starts_with("Adaptive") || layer == "AvgPool2d" || layer == "AvgPool3d";
}

void publish_as_passed(NnModule& self, const LayerConstructor& constructor, const CallArgs& args) {
  auto& parameters = constructor.signature().parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind != ParameterKind::integer_list) continue;
    const Value* passed = i < args.positional.size() ? &args.positional[i] : args.keyword(parameters[i].name.text());
    auto* items = stage::sequence_items(*self.attributes().find(parameters[i].name));
    bool is_default_number = !passed && items && !items->empty();
    if (is_default_number) self.attributes().set(parameters[i].name, Value((*items)[0]));
    if (passed) self.attributes().set(parameters[i].name, *passed);
  }
}

// The stride of a pool is its window if none is given.
void publish_stride(NnModule& self) {
  static const Name kStride("stride"), kKernelSize("kernel_size");
  auto *stride = self.attributes().find(kStride), *kernel_size = self.attributes().find(kKernelSize);
  auto* none = stride ? stage::sequence_items(*stride) : nullptr;
  bool unset = stride && (stride->is_none() || (none && none->empty()));
  if (unset && kernel_size) self.attributes().set(kStride, Value(*kernel_size));
}

Error no_constructor(const NativeClass& native, Span span) {
  Error error = make_error(DiagnosticKind::no_matching_overload, span,
                           fmt::format("the arguments do not fit `nn.{}`", native.name));
  for (auto& constructor : native.constructors) error->note({}, fmt::format("`{}`", constructor->signature().text()));
  return error;
}

}  // namespace

Status configure_layer(NnModule& self, CallArgs& args) {
  for (auto& constructor : self.native()->constructors) {
    torch::jit::Stack config;
    bool fits = TRY(guarded(self.type_name(), args.span,
                            [&] { return constructor->signature().match(self.state(), nullptr, args, config); }));
    if (!fits) continue;
    self.initialised = true;
    self.config = std::move(config);
    self.constructor = constructor.get();
    publish_config(self, *constructor);
    const std::string_view layer = self.native()->name;
    if (keeps_what_was_passed(layer)) publish_as_passed(self, *constructor, args);
    if (layer.starts_with("MaxPool") || layer.starts_with("AvgPool")) publish_stride(self);
    return {};
  }
  return no_constructor(*self.native(), args.span);
}

namespace {

Result<Value> construct_layer(Interpreter&, NnModule& self, CallArgs& args) {
  at::NoGradGuard weights_are_only_set;
  TRY(configure_layer(self, args));
  TRY(guarded(self.type_name(), args.span, [&] {
    Arguments arguments(self.constructor->signature(), self.config);
    if (self.constructor->row().create) self.constructor->row().create(self, arguments);
    if (self.constructor->row().reset) self.constructor->row().reset(self, arguments);
  }));
  return Value();
}

// nn.Identity takes anything.
Result<Value> construct_identity(Interpreter& interpreter, NnModule& self, CallArgs& args) {
  args.positional.clear();
  args.keywords.clear();
  return construct_layer(interpreter, self, args);
}

Result<Value> layer_forward(Interpreter&, NnModule& self, CallArgs& args) {
  if (self.constructor) return self.constructor->forward(self.state(), self, args);
  return make_error(DiagnosticKind::unknown_attribute, args.span,
                    fmt::format("`{}` was not initialised", self.type_name()), "call `super().__init__(...)` first");
}

// Every native class of the room, with what its instances need; lives as long as the class objects.
class NnBuilder {
 public:
  NnBuilder(HostState& state, stage::ModuleObject& nn) : state_(state), nn_(nn) {
    module_ = make_class("Module", nullptr);
    set_allocator(*module_, nullptr);
    add_methods(*module_, module_methods());
    publish("Module", module_);
  }

  void add_layers(LayerTable table) {
    for (const LayerRow& row : table) {
      std::string_view text = row.constructor;
      std::string name(text.substr(0, text.find('(')));
      auto [entry, is_new] = layers_.try_emplace(name);
      if (is_new) {
        entry->second = std::make_shared<NativeClass>();
        entry->second->name = name;
        ClassRef made = make_class(name, module_);
        set_allocator(*made, entry->second);
        state_.layers[name] = entry->second.get();
        made->members.set(Name("__init__"),
                          method("__init__", name == "Identity" ? construct_identity : construct_layer));
        made->members.set(Name("forward"), method("forward", layer_forward));
        publish(name, made);
      }
      entry->second->constructors.push_back(std::make_unique<LayerConstructor>(state_, row));
    }
  }

  void add_container(const std::string& name, ContainerKind kind, bool holds_parameters = false) {
    auto native = std::make_shared<NativeClass>();
    native->name = name;
    native->container = kind;
    native->holds_parameters = holds_parameters;
    ClassRef made = make_class(name, module_);
    set_allocator(*made, native);
    add_methods(*made, kind == ContainerKind::sequence ? sequence_methods() : mapping_methods());
    if (name == "Sequential") made->members.set(Name("forward"), method("forward", sequential_forward));
    publish(name, made);
  }

 private:
  void set_allocator(ClassObject& target, std::shared_ptr<NativeClass> native) {
    target.allocate = [&state = state_, native](Interpreter&, const ClassRef& made) -> Result<stage::ObjectRef> {
      return stage::ObjectRef(std::make_shared<NnModule>(state, made, native.get()));
    };
  }

  void publish(const std::string& name, const ClassRef& made) {
    state_.classes[name] = made;
    nn_.set(name, made);
  }

  HostState& state_;
  stage::ModuleObject& nn_;
  ClassRef module_;
  std::unordered_map<std::string, std::shared_ptr<NativeClass>> layers_;
};

using Lookup = const Callable* (HostState::*)(Name);

// A namespace whose functions are resolved on first use.
std::shared_ptr<stage::ModuleObject> function_namespace(HostState& state, const std::string& name, Lookup lookup) {
  auto made = std::make_shared<stage::ModuleObject>(name);
  made->missing = [&state, lookup](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    const Callable* callable = (state.*lookup)(attribute);
    if (!callable) return std::optional<Value>();
    return std::optional<Value>(std::make_shared<TorchFunction>(state, *callable));
  };
  return made;
}

// _pair(3) is (3, 3); what is a sequence already becomes a tuple.
std::shared_ptr<stage::ModuleObject> utils_namespace() {
  constexpr std::pair<const char*, size_t> kTuples[] = {
      {"_single", 1}, {"_pair", 2}, {"_triple", 3}, {"_quadruple", 4}};
  auto made = std::make_shared<stage::ModuleObject>("torch.nn.modules.utils");
  for (auto& [name, count] : kTuples) {
    made->function(name, [count = count](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
      static constexpr stage::Signature kSignature{"parse", {"x"}, 1};
      const Value given = *TRY(stage::Arguments::read(args, kSignature))[0];
      if (!stage::sequence_items(given)) return stage::make_tuple(std::vector<Value>(count, given));
      return stage::make_tuple(TRY(interpreter.to_vector(given, args.span)));
    });
  }
  return made;
}

// torch.nn.init: its functions set values and record nothing.
std::shared_ptr<stage::ModuleObject> init_namespace(HostState& state) {
  auto made = std::make_shared<stage::ModuleObject>("torch.nn.init");
  made->missing = [&state](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    const Callable* callable = state.initializer(attribute);
    if (!callable) return std::optional<Value>();
    auto body = [&state, callable](Interpreter&, CallArgs& args) {
      at::NoGradGuard values_are_only_set;
      return callable->call(state, nullptr, args);
    };
    return std::optional<Value>(stage::make_builtin(attribute.str(), body));
  };
  return made;
}

Result<Value> make_parameter(HostState& state, CallArgs& args) {
  const Value* data = args.positional.empty() ? args.keyword("data") : &args.positional[0];
  const Value* grad = args.positional.size() > 1 ? &args.positional[1] : args.keyword("requires_grad");
  const at::Tensor* tensor = data ? tensor_of(*data) : nullptr;
  if (!tensor) return make_error(DiagnosticKind::wrong_arguments, args.span, "`nn.Parameter` takes a tensor");
  return state.wrap_parameter(tensor->detach(), !grad || !grad->if_bool() || *grad->if_bool());
}

}  // namespace

void install_modules(HostState& state, Interpreter& interpreter) {
  auto nn = std::make_shared<stage::ModuleObject>("torch.nn");
  NnBuilder builder(state, *nn);
  for (LayerTable table : {linear_layers(), convolution_layers(), norm_layers(), recurrent_layers(), attention_layers(),
                           stateless_layers()}) {
    builder.add_layers(table);
  }
  builder.add_container("Sequential", ContainerKind::sequence);
  builder.add_container("ModuleList", ContainerKind::sequence);
  builder.add_container("ParameterList", ContainerKind::sequence, true);
  builder.add_container("ModuleDict", ContainerKind::mapping);
  builder.add_container("ParameterDict", ContainerKind::mapping, true);

  ClassRef tensor = state.classes["Tensor"];
  ClassRef parameter = make_class("Parameter", tensor);
  parameter->construct = [&state](Interpreter&, CallArgs& args) { return make_parameter(state, args); };
  parameter->sealed = true;
  interpreter.set_class(TensorObject::kParameterType, parameter);
  nn->set("Parameter", parameter);

  auto functional = function_namespace(state, "torch.nn.functional", &HostState::functional);
  auto init = init_namespace(state);
  auto parameter_module = std::make_shared<stage::ModuleObject>("torch.nn.parameter");
  parameter_module->set("Parameter", parameter);
  nn->set("functional", functional);
  nn->set("init", init);
  nn->set("parameter", parameter_module);
  nn->set("modules", nn);
  nn->missing = [raw = nn.get()](Interpreter& run, Name name, Span) { return find_python_layer(run, *raw, name); };
  interpreter.add_module("torch.nn", nn);
  interpreter.add_module("torch.nn.functional", functional);
  interpreter.add_module("torch.nn.init", init);
  interpreter.add_module("torch.nn.parameter", parameter_module);
  interpreter.add_module("torch.nn.modules", nn);
  interpreter.add_module("torch.nn.modules.transformer", nn);
  interpreter.add_module("torch.nn.modules.utils", utils_namespace());
  if (auto torch = interpreter.find_module("torch")) torch->set("nn", nn);
}

}  // namespace tilepilot::eval
