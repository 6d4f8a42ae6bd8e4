#include "compiler/targets/cuda/block_bands.h"

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/statements.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

constexpr int64_t kBandRows = 16;

bool may_wait(const Stmt& stmt) { return ir::as<ir::While>(stmt) || ir::as<ir::Atomic>(stmt); }

}  // namespace

std::vector<Stmt> name_in_bands(const ir::Kernel& kernel, const Expr& number) {
  const Span span = kernel.body->span;
  std::vector<Stmt> out;
  const auto op = [&](BinaryOp which, const Expr& a, const Expr& b) { return ir::binary(which, a, b, span); };
  const auto let = [&](const char* name, const Expr& value) {
    const Var var = ir::make_var(name, ir::kInt32);
    out.push_back(ir::make_stmt(ir::Let{var, value}, span));
    return ir::var_ref(var);
  };
  const auto define = [&](size_t axis, const Expr& value) {
    const Var& var = kernel.block_vars[axis];
    out.push_back(ir::make_stmt(ir::Let{var, ir::cast(value, var->type)}, span));
  };
  const Expr columns = ir::cast(kernel.grid[0], ir::kInt32), rows = ir::cast(kernel.grid[1], ir::kInt32);
  const Expr height = ir::int_imm(kBandRows), in_band = op(BinaryOp::mul, columns, height);
  const Expr band = let("band", op(BinaryOp::floor_div, number, in_band));
  const Expr within = let("within", op(BinaryOp::floor_mod, number, in_band));
  const Expr first = op(BinaryOp::mul, band, height);
  const auto all = ir::constant_int(kernel.grid[1]);
  const bool even = all && *all % kBandRows == 0;
  const Expr left = op(BinaryOp::min, op(BinaryOp::sub, rows, first), height);
  const Expr high = let("high", even ? height : op(BinaryOp::max, left, ir::int_imm(1)));
  define(0, op(BinaryOp::floor_div, within, high));
  // The bound is known by itself; what follows from it needs no checks.
  define(1, op(BinaryOp::min, op(BinaryOp::add, first, op(BinaryOp::floor_mod, within, high)),
               op(BinaryOp::sub, rows, ir::int_imm(1))));
  return out;
}

ir::Kernel in_bands(const ir::Kernel& kernel) {
  if (!kernel.cluster.empty()) return kernel;  // whose blocks stand beside each other
  if (!kernel.thread_vars.empty() || kernel.block_vars.size() != 2 || ir::contains(kernel.body, may_wait))
    return kernel;
  const auto is_small = [](const Expr& extent) { return ir::constant_int(extent).value_or(kBandRows) < kBandRows; };
  if (std::any_of(kernel.grid.begin(), kernel.grid.end(), is_small)) return kernel;
  ir::Kernel result = kernel;
  result.block_vars = {ir::make_var("column", ir::kInt32), ir::make_var("row", ir::kInt32)};
  const Span span = kernel.body->span;
  const Expr number = ir::binary(
      BinaryOp::add, ir::var_ref(result.block_vars[0]),
      ir::binary(BinaryOp::mul, ir::var_ref(result.block_vars[1]), ir::cast(kernel.grid[0], ir::kInt32), span), span);
  std::vector<Stmt> body = name_in_bands(kernel, number);
  for (const Stmt& stmt : ir::statements(kernel.body)) body.push_back(stmt);
  result.body = ir::make_stmt(ir::Block{std::move(body)}, span);
  return result;
}

}  // namespace tilepilot::targets::cuda
