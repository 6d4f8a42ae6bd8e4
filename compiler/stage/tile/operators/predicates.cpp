// Whether any, or every, element of a buffer is other than zero.
#include "compiler/ir/scalar_buffer.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

// Each thread looks for itself; `op` puts together what the elements say, 0 or 1.
Result<Value> look_at_all(const TileArguments& arguments, ir::BinaryOp op, int64_t start) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  const ir::Region region = TRY(tile_region(arguments, 0));
  const ir::Buffer found = builder.allocate(ir::scalar_buffer("found", ir::kInt32, span));
  const std::vector<ir::Expr> place{ir::int_imm(0, ir::kInt32, span)};
  TRY(builder.emit(ir::Store{found, place, ir::int_imm(start, ir::kInt32, span)}, span));
  std::vector<ir::Expr> indices = region.start;
  std::vector<std::pair<ir::Var, int64_t>> loops;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (region.extent[axis] == 1) continue;
    loops.emplace_back(builder.make_var("i"), region.extent[axis]);
    const ir::Expr step = fold_cast(ir::var_ref(loops.back().first, span), indices[axis]->type, span);
    indices[axis] = fold_binary(ir::BinaryOp::add, indices[axis], step, span);
  }
  const ir::Expr element = ir::load(region.buffer, indices, span);
  const ir::Expr holds = fold_cast(TRY(to_condition(make_expr(arguments.context(), element), span)), ir::kInt32, span);
  ir::Stmt body =
      ir::make_stmt(ir::Store{found, place, ir::binary(op, ir::load(found, place, span), holds, span)}, span);
  for (size_t k = loops.size(); k-- > 0;) {
    const ir::Expr extent = ir::int_imm(loops[k].second, ir::kInt32, span);
    body = ir::make_stmt(
        ir::For{ir::LoopKind::serial, {loops[k].first}, {extent}, 0, ir::make_stmt(ir::Block{{body}}, span)}, span);
  }
  TRY(builder.emit(std::move(body)));
  const ir::Expr zero = ir::int_imm(0, ir::kInt32, span);
  const ir::Expr result = ir::binary(ir::BinaryOp::ne, ir::load(found, place, span), zero, span);
  return make_expr(arguments.context(), TRY(builder.let("", result, span)));
}

Result<Value> any_of(TileArguments& arguments) { return look_at_all(arguments, ir::BinaryOp::max, 0); }
Result<Value> all_of(TileArguments& arguments) { return look_at_all(arguments, ir::BinaryOp::min, 1); }

}  // namespace

const std::vector<TileFunction>& predicate_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"any_of", "buffer", "whether an element of a buffer or slice is other than zero", any_of},
      {"all_of", "buffer", "whether every element of a buffer or slice is other than zero", all_of},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
