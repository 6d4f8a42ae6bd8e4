#include "compiler/targets/gpu/lower/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Scope;

Expr bounds_condition(const Lowering& lowering, const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr condition;
  if (buffer->scope != Scope::global) return condition;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const Expr &at = indices[axis], &extent = buffer->shape[axis];
    if (lowering.facts.in_bounds(at, extent)) continue;
    if (!lowering.facts.is_never_negative(at))
      condition = both(condition, ir::binary(BinaryOp::ge, at, ir::int_imm(0, at->type), at->span));
    const ir::DType type = ir::promote(at->type, extent->type);
    condition = both(condition, ir::binary(BinaryOp::lt, ir::cast(at, type), ir::cast(extent, type), at->span));
  }
  return condition;
}

MatrixStores matrix_stores(const Lowering& lowering, const ir::For& loop, const layout::Fragment& fragment) {
  MatrixStores result = find_matrix_stores(
      loop, fragment, [&](const Expr& index) { return lowering.facts.affine(ir::cast(index, ir::kInt32)); });
  for (const ir::Stmt& stmt : ir::statements(loop.body)) {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr || !result.stores.contains(stmt.get())) continue;
    const layout::SharedLayout& memory = lowering.inference.tiles.at(store->buffer.get());
    if (rows_are_aligned(memory)) continue;
    result.stores.erase(stmt.get());
    result.obstacle =
        fmt::format("rows of `{}` have {} elements, no multiple of 8", store->buffer->name, memory.shape().back());
  }
  if (!lowering.inference.machine.has_stmatrix) {
    result.obstacle = result.stores.empty() ? "" : lowering.inference.machine.target + " has none";
    result.stores.clear();
  }
  if (result.stores.empty()) result.matrices.reset();
  return result;
}

}  // namespace tilepilot::targets::gpu
