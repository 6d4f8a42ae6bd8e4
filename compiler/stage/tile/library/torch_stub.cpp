// A `torch` without tensors, for compiling tile programs where LibTorch is absent: modules can be imported, classes
// derive from nn.Module, dtypes name element types; calling anything is an error that names the command that can.
#include <fmt/format.h>

#include "compiler/ir/dtype.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/tile/tile.h"

namespace tilepilot::stage {
namespace {

struct StubDType final : TypedObject<StubDType> {
  static constexpr Type kType{"torch.dtype"};
  explicit StubDType(std::string name_) : name(std::move(name_)) {}
  Result<std::string> repr(Interpreter&) override { return name; }
  const std::string name;  // "torch.float16"
};

// Calls that modules make while they are read, and that need no tensors. A name that is not here needs them.
enum class StubAnswer { nothing, decorator, itself, yes, zero, one, capability, properties };
struct StubCall {
  std::string_view name;
  StubAnswer answer;
};
constexpr StubCall kStubCalls[] = {
    {"torch.manual_seed", StubAnswer::nothing},
    {"torch.random.manual_seed", StubAnswer::nothing},
    {"torch.cuda.manual_seed", StubAnswer::nothing},
    {"torch.cuda.manual_seed_all", StubAnswer::nothing},
    {"torch.set_num_threads", StubAnswer::nothing},
    {"torch.set_default_dtype", StubAnswer::nothing},
    {"torch.set_default_device", StubAnswer::nothing},
    {"torch.set_printoptions", StubAnswer::nothing},
    {"torch.set_float32_matmul_precision", StubAnswer::nothing},
    {"torch.use_deterministic_algorithms", StubAnswer::nothing},
    {"torch.set_grad_enabled", StubAnswer::nothing},
    {"torch.cuda.init", StubAnswer::nothing},
    {"torch.cuda.set_device", StubAnswer::nothing},
    {"torch.cuda.synchronize", StubAnswer::nothing},
    {"torch.cuda.empty_cache", StubAnswer::nothing},
    {"torch.no_grad", StubAnswer::decorator},
    {"torch.enable_grad", StubAnswer::decorator},
    {"torch.inference_mode", StubAnswer::decorator},
    {"torch.compile", StubAnswer::decorator},
    {"torch.amp.custom_fwd", StubAnswer::decorator},
    {"torch.amp.custom_bwd", StubAnswer::decorator},
    {"torch.device", StubAnswer::itself},
    {"torch.cuda.is_available", StubAnswer::yes},
    {"torch.cuda.current_device", StubAnswer::zero},
    {"torch.cuda.device_count", StubAnswer::one},
    {"torch.cuda.get_device_capability", StubAnswer::capability},
    {"torch.cuda.get_device_properties", StubAnswer::properties},
};

// As the device that stands in for a GPU in `run` says.
Value stub_properties() {
  auto properties = std::make_shared<ModuleObject>("properties");
  properties->set("multi_processor_count", Value(132));
  properties->set("major", Value(9));
  properties->set("minor", Value(0));
  properties->set("warp_size", Value(32));
  properties->set("name", Value("TilePilot CPU"));
  return Value(std::move(properties));
}

// `@torch.no_grad()` and `torch.compile(f)` leave the function as it is.
Value decorated(const CallArgs& args) {
  if (args.positional.size() == 1 && args.positional[0].if_object()) return args.positional[0];
  return Value(std::make_shared<BuiltinFunction>("decorator", [](Interpreter&, CallArgs& given) -> Result<Value> {
    return given.positional.empty() ? Value() : given.positional[0];
  }));
}

Value stub_value(StubAnswer answer, const CallArgs& args, Value itself) {
  switch (answer) {
    case StubAnswer::nothing:
      return Value();
    case StubAnswer::decorator:
      return decorated(args);
    case StubAnswer::itself:
      return itself;
    case StubAnswer::yes:
      return Value(true);
    case StubAnswer::zero:
      return Value(0);
    case StubAnswer::one:
      return Value(1);
    case StubAnswer::capability:
      return make_tuple({Value(9), Value(0)});
    case StubAnswer::properties:
      return stub_properties();
  }
  return Value();
}

// Any name of torch: it can be passed around, its attributes exist and can be set, calling it is an error unless the
// table above has an answer.
struct StubName final : TypedObject<StubName> {
  static constexpr Type kType{"torch object"};
  explicit StubName(std::string name_) : name(std::move(name_)) {}
  Result<Value> get_attribute(Interpreter&, Name attribute, Span) override {
    return Value(std::make_shared<StubName>(fmt::format("{}.{}", name, attribute.text())));
  }
  Status set_attribute(Interpreter&, Name, Value, Span) override { return {}; }
  Result<Value> get_item(Interpreter&, const Value&, Span) override { return Value(shared_from_this()); }
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    for (const StubCall& row : kStubCalls)
      if (row.name == name) return stub_value(row.answer, args, Value(shared_from_this()));
    if (name == "torch.__getattribute__") {
      static constexpr Signature kSignature{"__getattribute__", {"name"}, 1};
      const std::string attribute = TRY(TRY(Arguments::read(args, kSignature)).text(0));
      return interpreter.find_module("torch")->get_attribute(interpreter, Name(attribute), args.span);
    }
    return make_error(DiagnosticKind::forbidden, args.span,
                      fmt::format("`{}` needs tensors, and here tile programs are only compiled", name),
                      "use the command `run` or `check` for host code");
  }
  // `torch.Tensor | None`, an annotation.
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp op, const Value&, bool, Span) override {
    return op == BinaryOp::bit_or ? std::optional<Value>(Value(shared_from_this())) : std::nullopt;
  }
  Result<std::string> repr(Interpreter&) override { return name; }
  const std::string name;
};

std::shared_ptr<ModuleObject> stub_module(const std::string& name) {
  auto module = std::make_shared<ModuleObject>(name);
  module->missing = [name](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    return std::optional<Value>(std::make_shared<StubName>(fmt::format("{}.{}", name, attribute.text())));
  };
  return module;
}

// A class to derive from, such as nn.Module.
std::shared_ptr<ClassObject> base_class(std::string_view name) {
  auto base = std::make_shared<ClassObject>();
  base->name = Name(name);
  base->resolution_order = {base.get()};
  base->members.set(Name("__init__"), std::make_shared<BuiltinFunction>(
                                          "__init__", [](Interpreter&, CallArgs&) { return Result<Value>(Value()); }));
  return base;
}

constexpr std::string_view kStubModules[] = {"torch.nn",       "torch.nn.functional", "torch.nn.init",
                                             "torch.autograd", "torch.backends",      "torch.cuda",
                                             "torch.random",   "torch.testing",       "torch.version"};

}  // namespace

void install_torch_stub(Interpreter& interpreter) {
  auto torch = stub_module("torch");
  for (const char* name :
       {"float16", "float32", "float64", "bfloat16",      "int8",        "int16",         "int32", "int64",
        "uint8",   "bool",    "half",    "float",         "double",      "int",           "long",  "short",
        "uint16",  "uint32",  "uint64",  "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}) {
    auto type = ir::parse_dtype(name);
    if (type) torch->set(name, Value(std::make_shared<StubDType>(fmt::format("torch.{}", ir::to_string(*type)))));
  }
  interpreter.add_module("torch", torch);
  for (std::string_view name : kStubModules) {
    auto module = stub_module(std::string(name));
    interpreter.add_module(name, module);
    const size_t dot = name.rfind('.');
    interpreter.find_module(name.substr(0, dot))->set(name.substr(dot + 1), Value(module));
  }
  interpreter.find_module("torch.nn")->set("Module", Value(base_class("Module")));
  interpreter.find_module("torch.autograd")->set("Function", Value(base_class("Function")));
  for (const char* toolkit : {"cuda", "hip"}) interpreter.find_module("torch.version")->set(toolkit, Value());
}

}  // namespace tilepilot::stage
