// `@T.macro`: a function that is traced where it is called, as part of the caller. Its parameters are values: a tile
// variable or expression is read at the call. Only a parameter annotated `T.Ref` stands for the caller's variable,
// element or slice itself.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

struct MacroObject final : TypedObject<MacroObject> {
  static constexpr Type kType{"tile macro"};
  MacroObject(TileContext& context_, std::shared_ptr<FunctionObject> function_)
      : context(context_), function(std::move(function_)) {}
  Result<Value> call(Interpreter&, CallArgs args) override;
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  TileContext& context;
  const std::shared_ptr<FunctionObject> function;

 private:
  Result<Value> pass(size_t parameter, const Value& value, Span span) const;
};

}  // namespace tilepilot::stage
