// Layouts as values: `T.Layout(shape, lambda i, j: ...)` says where each element of a buffer lies, `T.Fragment` which
// thread holds it and at which of its registers. Indices are ordinary integer expressions over one variable an axis.
#pragma once

#include "compiler/stage/tile/kernel/context.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {

struct LayoutObject final : TypedObject<LayoutObject> {
  static constexpr Type kType{"layout"};
  LayoutObject(TileContext& context_, std::vector<ir::Expr> shape_) : context(context_), shape(std::move(shape_)) {}
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call(Interpreter&, CallArgs args) override;

  TileContext& context;
  std::vector<ir::Expr> shape;   // of the buffer
  std::vector<ir::Var> vars;     // one an axis
  std::vector<ir::Expr> index;   // in memory; of a fragment: the register, or empty
  std::vector<ir::Expr> thread;  // of a fragment: who holds the element, one expression; else empty
  ir::Var replica = nullptr;     // of a fragment that several threads hold: which of `replicas`
  int64_t replicas = 1;
};

// Over one variable an axis. Errors: `shape` has no constant or symbolic integer in some place.
Result<std::shared_ptr<LayoutObject>> layout_over(TileContext& context, const Value& shape, Span span);
std::shared_ptr<LayoutObject> layout_of(TileContext& context, const ir::BufferData& buffer);

// Errors: more replicas than a block has threads, or none.
Status check_replicas(int64_t replicas, Span span);

// `tilelang.layout.make_...`: layouts by name, of buffers.
const std::vector<TileFunction>& named_layouts();

std::shared_ptr<ModuleObject> make_layout_module(const ContextRef& context);  // `tilelang.layout`

}  // namespace tilepilot::stage
