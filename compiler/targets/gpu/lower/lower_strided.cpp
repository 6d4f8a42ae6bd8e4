#include "compiler/ir/search.h"
#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;
using Stmts = Lowering::Stmts;

void lower_strided(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const auto& loop = *ir::as<ir::For>(stmt);
  const Span span = stmt->span;
  lowering.decisions.push_back(
      {span, "loop", "element by element", {"no wider: its extents are known at launch alone"}});
  Expr total;
  for (const Expr& extent : loop.extents) {
    const Expr wide = ir::cast(extent, ir::kInt32, span);
    total = total ? ir::binary(BinaryOp::mul, total, wide, span) : wide;
  }
  const ir::Var round = ir::make_var("round", ir::kInt32), number = ir::make_var("i", ir::kInt32);
  const Expr rounds = quotient(plus(total, ir::int_imm(lowering.threads - 1)), lowering.threads);
  Stmts body{ir::make_stmt(ir::Let{number, plus(times(ir::var_ref(round), lowering.threads), lowering.thread_number())},
                           span)};
  Stmts inner;
  Expr rest = ir::var_ref(number);
  for (size_t axis = loop.vars.size(); axis-- > 0;) {
    const Expr extent = ir::cast(loop.extents[axis], ir::kInt32, span);
    const Expr at = axis == 0 ? rest : ir::binary(BinaryOp::floor_mod, rest, extent, span);
    inner.push_back(ir::make_stmt(ir::Let{loop.vars[axis], ir::cast(at, loop.vars[axis]->type, span)}, span));
    rest = ir::binary(BinaryOp::floor_div, rest, extent, span);
  }
  lowering.facts.set_range(round, {0, INT32_MAX});
  for (const Stmt& part : ir::statements(loop.body))
    inner.push_back(in_places(lowering, part, [&](const Buffer& buffer, const std::vector<Expr>&) {
      lowering.fail(span,
                    fmt::format("`{}` is a fragment, and this loop's extent is known at launch alone", buffer->name));
      return ir::int_imm(0);
    }));
  const Expr exists = ir::binary(BinaryOp::lt, ir::var_ref(number), total, span);
  body.push_back(ir::make_stmt(ir::If{exists, ir::make_stmt(ir::Block{std::move(inner)}, span), nullptr}, span));
  out.push_back(ir::make_stmt(
      ir::For{ir::LoopKind::serial, {round}, {rounds}, 0, ir::make_stmt(ir::Block{std::move(body)}, span)}, span));
}

}  // namespace tilepilot::targets::gpu
