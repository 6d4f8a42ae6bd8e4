// `@T.prim_func`: a function whose body is traced into a program when it is defined.
#pragma once

#include "compiler/stage/tile/context.h"

namespace tilepilot::stage {

struct PrimFuncObject final : TypedObject<PrimFuncObject> {
  static constexpr Type kType{"PrimFunc"};
  explicit PrimFuncObject(ir::Program program_) : program(std::move(program_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<std::string> repr(Interpreter&) override;
  const ir::Program program;
};

// Traces a function whose parameters are annotated.
Result<std::shared_ptr<PrimFuncObject>> trace_prim_func(const ContextRef& context, FunctionObject& function, Span span);

// `@T.macro`: a function that is traced where it is called, as part of the caller.
struct MacroObject final : TypedObject<MacroObject> {
  static constexpr Type kType{"tile macro"};
  MacroObject(TileContext& context_, std::shared_ptr<FunctionObject> function_)
      : context(context_), function(std::move(function_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  TileContext& context;
  const std::shared_ptr<FunctionObject> function;
};

// Gives the decorators `T.prim_func` and `T.macro` to the module of the language.
void add_function_decorators(const ContextRef& context, ModuleObject& language);

// Something is a decorator with or without arguments: `@d` and `@d(...)`. `decorate` gets the function.
Value make_decorator(std::string name, std::function<Result<Value>(const Value& function, Span span)> decorate);

}  // namespace tilepilot::stage
