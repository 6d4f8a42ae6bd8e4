// Layouts as values: `T.Layout(shape, lambda i, j: ...)` says where each element of a buffer lies, `T.Fragment` which
// thread holds it and at which of its registers. Indices are ordinary integer expressions over one variable an axis.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

struct LayoutObject final : TypedObject<LayoutObject> {
  static constexpr Type kType{"layout"};
  LayoutObject(TileContext& context_, std::vector<ir::Expr> shape_) : context(context_), shape(std::move(shape_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call(Interpreter&, CallArgs args) override;

  TileContext& context;
  std::vector<ir::Expr> shape;   // of the buffer; empty for a layout that the compiler is asked to choose
  std::vector<ir::Var> vars;     // one an axis
  std::vector<ir::Expr> index;   // in memory; empty for a layout that the compiler is asked to choose
  std::vector<ir::Expr> thread;  // of a fragment: who holds the element, one expression; else empty
};

std::shared_ptr<ModuleObject> make_layout_module(const ContextRef& context);  // `tilelang.layout`

}  // namespace tilepilot::stage
