// `@T.prim_func`: a function whose body is traced into a program when it is defined.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

struct PrimFuncObject final : TypedObject<PrimFuncObject> {
  static constexpr Type kType{"PrimFunc"};
  explicit PrimFuncObject(ir::Program program_, std::vector<size_t> outputs_ = {})
      : program(std::move(program_)), outputs(std::move(outputs_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<std::string> repr(Interpreter&) override;
  const ir::Program program;
  const std::vector<size_t> outputs;  // the parameters that it makes itself, with `T.empty`, and returns
};

// Traces a function whose parameters are annotated.
Result<std::shared_ptr<PrimFuncObject>> trace_prim_func(const ContextRef& context, FunctionObject& function, Span span);

// Gives the decorators `T.prim_func` and `T.macro` to the module of the language.
void add_function_decorators(const ContextRef& context, ModuleObject& language);

// Something is a decorator with or without arguments: `@d` and `@d(...)`. `decorate` gets the function.
Value make_decorator(std::string name, std::function<Result<Value>(const Value& function, Span span)> decorate);

}  // namespace tilepilot::stage
