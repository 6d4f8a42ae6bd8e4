// The modules `warnings` and `abc`.
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Result<Value> warn(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.empty()) return type_error(args.span, "warn() missing required argument 'message' (pos 1)");
  interpreter.print("warning: " + TRY(interpreter.str(args.positional[0])) + "\n");
  return Value();
}

Result<Value> nothing(Interpreter&, CallArgs&) { return Value(); }

Result<Value> unchanged(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"decorator", {"function"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return *read[0];
}

}  // namespace

void fill_warnings(Interpreter&, ModuleObject& module) {
  module.function("warn", warn);
  for (std::string_view name : {"simplefilter", "filterwarnings"}) module.function(name, nothing);
}

void fill_abc(Interpreter& interpreter, ModuleObject& module) {
  for (std::string_view name : {"abstractmethod", "abstractproperty"}) module.function(name, unchanged);
  auto base = make_class(interpreter, Name("ABC"), {}, Span{});
  if (base.ok()) module.set("ABC", *std::move(base));
  module.set("ABCMeta", *interpreter.find_builtin("type"));
}

}  // namespace tilepilot::stage
