// A `torch` without tensors, for compiling tile programs where LibTorch is absent: modules can be imported, classes
// derive from nn.Module, dtypes name element types; calling anything is an error that names the command that can.
#include <fmt/format.h>

#include "compiler/ir/dtype.h"
#include "compiler/stage/python/objects.h"
#include "compiler/stage/tile/tile.h"

namespace tilepilot::stage {
namespace {

struct StubDType final : TypedObject<StubDType> {
  static constexpr Type kType{"torch.dtype"};
  explicit StubDType(std::string name_) : name(std::move(name_)) {}
  Result<std::string> repr(Interpreter&) override { return name; }
  const std::string name;  // "torch.float16"
};

// Any name of torch: it can be passed around, its attributes exist, calling it is an error.
struct StubName final : TypedObject<StubName> {
  static constexpr Type kType{"torch object"};
  explicit StubName(std::string name_) : name(std::move(name_)) {}
  Result<Value> get_attribute(Interpreter&, Name attribute, Span) override {
    return Value(std::make_shared<StubName>(fmt::format("{}.{}", name, attribute.text())));
  }
  Result<Value> get_item(Interpreter&, const Value&, Span) override { return Value(shared_from_this()); }
  Result<Value> call(Interpreter&, CallArgs args) override {
    if (name == "torch.no_grad" || name == "torch.inference_mode") return pass_through();
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

 private:
  // `@torch.no_grad()` leaves the function as it is.
  static Result<Value> pass_through() {
    return Value(std::make_shared<BuiltinFunction>("decorator", [](Interpreter&, CallArgs& args) -> Result<Value> {
      return args.positional.empty() ? Value() : args.positional[0];
    }));
  }
};

std::shared_ptr<ModuleObject> stub_module(const std::string& name) {
  auto module = std::make_shared<ModuleObject>(name);
  module->missing = [name](Interpreter&, Name attribute, Span) -> Result<std::optional<Value>> {
    return std::optional<Value>(std::make_shared<StubName>(fmt::format("{}.{}", name, attribute.text())));
  };
  return module;
}

// nn.Module, to derive from.
std::shared_ptr<ClassObject> module_class() {
  auto module = std::make_shared<ClassObject>();
  module->name = Name("Module");
  module->resolution_order = {module.get()};
  module->members.set(Name("__init__"), std::make_shared<BuiltinFunction>("__init__", [](Interpreter&, CallArgs&) {
                        return Result<Value>(Value());
                      }));
  return module;
}

}  // namespace

void install_torch_stub(Interpreter& interpreter) {
  auto torch = stub_module("torch");
  for (const char* name : {"float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
                           "bool", "half", "float", "double", "int", "long", "short"}) {
    auto type = ir::parse_dtype(name);
    if (type) torch->set(name, Value(std::make_shared<StubDType>(fmt::format("torch.{}", ir::to_string(*type)))));
  }
  auto nn = stub_module("torch.nn");
  nn->set("Module", Value(module_class()));
  auto functional = stub_module("torch.nn.functional");
  auto init = stub_module("torch.nn.init");
  nn->set("functional", Value(functional));
  nn->set("init", Value(init));
  torch->set("nn", Value(nn));
  interpreter.add_module("torch", torch);
  interpreter.add_module("torch.nn", nn);
  interpreter.add_module("torch.nn.functional", functional);
  interpreter.add_module("torch.nn.init", init);
}

}  // namespace tilepilot::stage
