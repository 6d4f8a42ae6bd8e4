#include "compiler/targets/gpu/layout/shared_layouts.h"

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/layout/stmatrix_stores.h"
#include "compiler/targets/gpu/machine/tma_rules.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

using TileSet = std::unordered_set<const ir::BufferData*>;

// Tiles that TMA stores: it undoes a swizzle. And those of which it fills panels.
void add_tma_tiles(const ir::Kernel& kernel, TileSet& tiles) {
  ir::walk(
      kernel.body,
      [&](const Stmt& part) {
        const auto* copy = ir::as<ir::Copy>(part);
        if (copy && (copy->in_line || copy->peer)) return;
        if (copy && copy->mode == ir::CopyMode::bulk_store) tiles.insert(copy->source.buffer.get());
        if (copy && copy->mode == ir::CopyMode::bulk_load && needs_panels(copy->destination))
          tiles.insert(copy->destination.buffer.get());
      },
      [](const Expr&) {});
}

// Operands of tensor cores; of multiply-adds those that threads read along k, several of its rows at once.
void add_operands(const ir::Kernel& kernel, const Inference& inference, TileSet& tiles) {
  ir::walk(
      kernel.body,
      [&](const Stmt& part) {
        const auto* gemm = ir::as<ir::Gemm>(part);
        if (gemm) {
          const GemmPlan& plan = inference.gemms.at(part.get());
          const bool together = plan.loads_steps_at_once();
          if (plan.atom || (together && !gemm->transpose_a)) tiles.insert(gemm->a.buffer.get());
          if (plan.atom || (together && gemm->transpose_b)) tiles.insert(gemm->b.buffer.get());
        }
        if (const auto* load = ir::as<ir::LoadMatrix>(part)) tiles.insert(load->row.buffer.get());
      },
      [](const Expr&) {});
}

// Tiles that are written as tensor cores leave their sums: 8 rows at the same place at once, by stmatrix or, with the
// same conflicts, word by word. What no row of a matrix fits stays as it is.
void add_matrix_tiles(const ir::Kernel& kernel, const Inference& inference, TileSet& tiles) {
  const TileSet in_order = tiles_in_order(kernel.body);
  ir::walk(
      kernel.body,
      [&](const Stmt& part) {
        const auto layout = inference.loops.find(part.get());
        if (layout == inference.loops.end()) return;
        const auto& loop = *ir::as<ir::For>(part);
        const MatrixStores found = find_matrix_stores(loop, layout->second, affine_as_written);
        for (const Stmt& stmt : ir::statements(loop.body)) {
          if (!found.stores.contains(stmt.get())) continue;
          const ir::BufferData* tile = ir::as<ir::Store>(stmt)->buffer.get();
          const bool has_rows = ir::constant_int(tile->shape.back()).value_or(1) % kMatrixRow == 0;
          if (has_rows && !in_order.contains(tile)) tiles.insert(tile);
        }
      },
      [](const Expr&) {});
}

layout::SharedLayout row_major(const layout::Shape& shape, int64_t bits) {
  return layout::SharedLayout::linear(shape, bits);
}

}  // namespace

std::unordered_set<const ir::BufferData*> tiles_in_order(const Stmt& body) {
  TileSet tiles;
  ir::walk(
      body,
      [&](const Stmt& part) {
        const auto* copy = ir::as<ir::Copy>(part);
        if (!ir::as<ir::ExternCall>(part) && !(copy && (copy->in_line || copy->peer))) return;
        ir::each_own_effect(part, [&](const ir::Buffer& buffer, bool) { tiles.insert(buffer.get()); });
      },
      [](const Expr&) {});
  return tiles;
}

TileSet tiles_of_boxes(const Stmt& body) {
  TileSet tiles;
  ir::walk(
      body,
      [&](const Stmt& part) {
        const auto* copy = ir::as<ir::Copy>(part);
        if (copy == nullptr || copy->in_line || copy->peer) return;
        if (copy->mode == ir::CopyMode::bulk_store) tiles.insert(copy->source.buffer.get());
        if (copy->mode == ir::CopyMode::bulk_load) tiles.insert(copy->destination.buffer.get());
      },
      [](const Expr&) {});
  return tiles;
}

void lay_out_shared_tiles(const ir::Kernel& kernel, const TileSet& viewed, Inference& inference) {
  TileSet in_panels, in_rows;
  add_tma_tiles(kernel, in_panels);
  add_operands(kernel, inference, in_panels);
  add_matrix_tiles(kernel, inference, in_rows);
  const TileSet of_boxes = tiles_of_boxes(kernel.body);
  for (const Buffer& buffer : kernel.allocations) {
    if (buffer->scope != Scope::shared) continue;
    const layout::Shape shape = shape_of(buffer);
    const bool may_spread = !viewed.contains(buffer.get()) && buffer->rank() >= 2;
    const bool by_rows = may_spread && in_rows.contains(buffer.get());
    const bool by_panels =
        may_spread && (in_panels.contains(buffer.get()) || (by_rows && of_boxes.contains(buffer.get())));
    const auto choose = by_panels ? layout::conflict_free_layout : by_rows ? layout::conflict_free_rows : row_major;
    inference.tiles.insert_or_assign(buffer.get(), choose(shape, buffer->type.bytes() * 8));
  }
}

}  // namespace tilepilot::targets::gpu
