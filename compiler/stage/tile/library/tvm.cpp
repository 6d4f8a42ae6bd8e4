#include "compiler/stage/tile/library/tvm.h"

#include <fmt/format.h>

#include "compiler/stage/python/objects/foreign.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/markers.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Result<Value> constant(TileArguments& arguments) {
  ir::DType type = ir::kInt32;
  if (arguments.has(1))
    type = TRY(resolve_dtype(arguments.context(), arguments[1], arguments.span(1)));
  else if (arguments[0].if_float())
    type = ir::kFloat32;
  return convert(arguments.context(), arguments[0], type, arguments.span());
}

constexpr TileFunction kConstant{"const", "value, dtype=", "a constant of a dtype", constant};

// Functions of `tvm.tirx` by the name that the language has for them.
constexpr std::pair<std::string_view, std::string_view> kSameAs[] = {
    {"reinterpret", "reinterpret"},
    {"if_then_else", "if_then_else"},
    {"Select", "Select"},
    {"Cast", "Cast"},
    {"Min", "min"},
    {"Max", "max"},
    {"min", "min"},
    {"max", "max"},
    {"abs", "abs"},
    {"ceildiv", "ceildiv"},
    {"floordiv", "floordiv"},
    {"floormod", "floormod"},
    {"truncdiv", "truncdiv"},
    {"truncmod", "truncmod"},
    {"And", "And"},
    {"Or", "Or"},
    {"Not", "Not"},
    {"all", "all"},
    {"any", "any"},
    {"exp", "exp"},
    {"exp2", "exp2"},
    {"log", "log"},
    {"log2", "log2"},
    {"sqrt", "sqrt"},
    {"max_value", "max_value"},
    {"min_value", "min_value"},
    {"infinity", "infinity"},
};

void refuse_the_rest(ModuleObject& module) {
  module.missing = [name = module.name](Interpreter&, Name attribute, Span span) -> Result<std::optional<Value>> {
    if (attribute.text().substr(0, 2) == "__") return std::optional<Value>();
    std::string shown = fmt::format("{}.{}", name, attribute.text());
    return std::optional<Value>(std::make_shared<ForeignObject>(std::move(shown), "tvm", span));
  };
}

const TileFunction* find_function(std::string_view name) {
  for (auto table : {maths_functions, integer_functions, value_functions})
    for (const TileFunction& row : table())
      if (row.name == name) return &row;
  return nullptr;
}

// What programs are compiled for is chosen outside of them: `with tvm.target.Target("c"):` changes nothing.
struct TargetObject final : TypedObject<TargetObject> {
  static constexpr Type kType{"Target"};
  explicit TargetObject(std::string text_) : text(std::move(text_)) {}
  Result<std::string> repr(Interpreter&) override { return text; }
  Result<Value> enter(Interpreter&, Span) override { return Value(shared_from_this()); }
  Status exit(Interpreter&, Span) override { return {}; }
  const std::string text;
};

Result<Value> make_target(Interpreter& interpreter, CallArgs& args) {
  std::string text = args.positional.empty() ? "" : TRY(interpreter.str(args.positional[0]));
  return Value(std::make_shared<TargetObject>(std::move(text)));
}

}  // namespace

std::shared_ptr<ModuleObject> make_tvm(const ContextRef& context) {
  auto tvm = std::make_shared<ModuleObject>("tvm");
  auto tirx = std::make_shared<ModuleObject>("tvm.tirx");
  tvm->set("DataType", Value(std::make_shared<DTypeMaker>(*context)));
  tirx->set("const", make_function(context, "tirx.", kConstant));
  for (const auto& [name, same] : kSameAs)
    if (const TileFunction* row = find_function(same)) tirx->set(name, make_function(context, "T.", *row));
  for (const char* name : {"PrimExpr", "PrimFunc", "Var", "Buffer"}) tirx->set(name, make_marker("tirx.", name));
  auto target = std::make_shared<ModuleObject>("tvm.target");
  target->function("Target", make_target);
  tvm->set("target", Value(target));
  tvm->set("tirx", Value(tirx));
  tvm->set("tir", Value(tirx));
  for (const auto& module : {tvm, tirx, target}) refuse_the_rest(*module);
  return tvm;
}

}  // namespace tilepilot::stage
