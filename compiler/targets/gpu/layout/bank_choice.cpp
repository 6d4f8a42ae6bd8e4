#include "compiler/targets/gpu/layout/bank_choice.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "compiler/targets/gpu/layout/layout_cost.h"
#include "compiler/targets/gpu/layout/requested_layouts.h"
#include "compiler/targets/gpu/layout/shared_layouts.h"
#include "compiler/targets/gpu/layout/vector_access.h"

namespace tilepilot::targets::gpu {

namespace {

using TileLayouts = decltype(Inference::tiles);

// Whether each thread names neighbours in memory one by one: the device compiler makes one access of those of a row,
// and finds none in a swizzled tile.
bool has_neighbours(const MemoryAccess& access, const layout::Fragment& at) {
  const Lanes lanes = lanes_of(at);
  return lanes.count > 1 && std::abs(access.distances[lanes.axis]) == 1 && access.vectors[lanes.axis] == 1;
}

// Of all loops, in accesses to this tile; nullopt if some of them are better off with rows.
std::optional<int64_t> wavefronts_of(const ir::Buffer& tile, const FragmentUsers& users, const c::IntegerFacts& facts,
                                     const TileLayouts& tiles, const Inference& inference) {
  int64_t sum = 0;
  for (const ParallelLoop& loop : users.loops) {
    const auto is_of_tile = [&](const Use& use) { return use.buffer == tile; };
    const auto dealt = inference.loops.find(loop.stmt.get());
    if (std::none_of(loop.uses.begin(), loop.uses.end(), is_of_tile) || dealt == inference.loops.end()) continue;
    std::vector<MemoryAccess> accesses = memory_accesses(loop, facts, tiles, inference.machine.adds_vectors);
    std::erase_if(accesses, [&](const MemoryAccess& access) { return access.buffer != tile; });
    for (const MemoryAccess& access : accesses)
      if (has_neighbours(access, dealt->second)) return std::nullopt;
    sum += loop_cost(loop, accesses, dealt->second).wavefronts * loop.times;
  }
  return sum;
}

// Tiles of which TMA moves parts of rows: their panels are decided where that is planned.
std::unordered_set<const ir::BufferData*> tiles_of_parts(const ir::Stmt& body) {
  std::unordered_set<const ir::BufferData*> tiles;
  ir::walk(
      body,
      [&](const ir::Stmt& part) {
        const auto* copy = ir::as<ir::Copy>(part);
        if (copy == nullptr || (copy->mode != ir::CopyMode::bulk_load && copy->mode != ir::CopyMode::bulk_store))
          return;
        const ir::Region& tile = copy->mode == ir::CopyMode::bulk_load ? copy->destination : copy->source;
        const bool whole_rows = ir::constant_int(tile.start.back()) == 0 &&
                                ir::constant_int(tile.buffer->shape.back()) == tile.extent.back();
        if (!whole_rows) tiles.insert(tile.buffer.get());
      },
      [](const ir::Expr&) {});
  return tiles;
}

}  // namespace

void avoid_bank_conflicts(const ir::Kernel& kernel, const FragmentUsers& users,
                          const std::unordered_set<const ir::BufferData*>& viewed, Inference& inference) {
  if (!kernel.thread_vars.empty()) return;  // whose threads may have a swizzle of their own
  const auto in_order = tiles_in_order(kernel.body), in_parts = tiles_of_parts(kernel.body);
  const c::IntegerFacts facts = facts_of(kernel);
  for (const ir::Buffer& buffer : kernel.allocations) {
    const auto tile = inference.tiles.find(buffer.get());
    if (tile == inference.tiles.end() || buffer->rank() < 2 || tile->second.span() != layout::SwizzleSpan::none)
      continue;
    if (is_as_requested(inference, buffer.get())) continue;
    if (viewed.contains(buffer.get()) || in_order.contains(buffer.get()) || in_parts.contains(buffer.get())) continue;
    const auto swizzled = layout::conflict_free_layout(shape_of(buffer), buffer->type.bytes() * 8);
    if (swizzled.span() == layout::SwizzleSpan::none) continue;  // it would take more memory
    TileLayouts others = inference.tiles;
    others.insert_or_assign(buffer.get(), swizzled);
    const auto now = wavefronts_of(buffer, users, facts, inference.tiles, inference);
    if (now.value_or(0) == 0) continue;
    const auto then = wavefronts_of(buffer, users, facts, others, inference);
    if (then && 4 * *then <= 3 * *now) inference.tiles.insert_or_assign(buffer.get(), swizzled);
  }
}

int64_t cost_of(const ir::Kernel& kernel, const FragmentUsers& users, const Inference& inference) {
  const c::IntegerFacts facts = facts_of(kernel);
  LayoutCost cost;
  for (const ParallelLoop& loop : users.loops) {
    const auto dealt = inference.loops.find(loop.stmt.get());
    if (dealt == inference.loops.end()) continue;
    const auto accesses = memory_accesses(loop, facts, inference.tiles, inference.machine.adds_vectors);
    cost += loop_cost(loop, accesses, dealt->second) * loop.times;
  }
  for (const auto& [stmt, times] : users.reductions) {
    const auto* reduce = ir::as<ir::Reduce>(stmt);
    if (reduce == nullptr) continue;
    const auto source = inference.fragments.find(reduce->source.buffer.get());
    const auto result = inference.fragments.find(reduce->destination.buffer.get());
    if (source == inference.fragments.end() || result == inference.fragments.end()) continue;
    cost += reduction_cost(source->second, static_cast<size_t>(reduce->axis), result->second.register_count()) * times;
  }
  return cost.total();
}

namespace {

// Tiles of copies, GEMMs, reductions and foreign functions.
std::unordered_set<const ir::BufferData*> tiles_of_operators(const ir::Stmt& body) {
  std::unordered_set<const ir::BufferData*> tiles;
  ir::walk(
      body,
      [&](const ir::Stmt& part) {
        if (ir::as<ir::Store>(part) || ir::as<ir::Let>(part) || ir::as<ir::Atomic>(part)) return;
        ir::each_own_effect(part, [&](const ir::Buffer& buffer, bool) { tiles.insert(buffer.get()); });
      },
      [](const ir::Expr&) {});
  return tiles;
}

// Whether the loops that name the tile cost a quarter more than they would at best.
bool is_slow(const ir::Buffer& tile, const FragmentUsers& users, const c::IntegerFacts& facts,
             const Inference& inference) {
  LayoutCost cost, least;
  for (const ParallelLoop& loop : users.loops) {
    const auto dealt = inference.loops.find(loop.stmt.get());
    const bool names =
        std::any_of(loop.uses.begin(), loop.uses.end(), [&](const Use& use) { return use.buffer == tile; });
    if (!names || dealt == inference.loops.end()) continue;
    const auto accesses = memory_accesses(loop, facts, inference.tiles, inference.machine.adds_vectors);
    cost += loop_cost(loop, accesses, dealt->second) * loop.times;
    least += least_cost(loop, accesses, dealt->second.thread_count()) * loop.times;
  }
  return 4 * cost.total() > 5 * least.total();
}

}  // namespace

std::vector<Inference::TileChoice> tiles_to_try(const ir::Kernel& kernel, const FragmentUsers& users,
                                                const std::unordered_set<const ir::BufferData*>& viewed,
                                                const Inference& inference) {
  // Roles agree on tiles once they are planned.
  if (!kernel.thread_vars.empty() || ir::contains<ir::Barrier>(kernel.body)) return {};
  int64_t bytes = 0;
  for (const auto& [tile, layout] : inference.tiles) bytes += layout.bytes();
  const auto of_operators = tiles_of_operators(kernel.body);
  const c::IntegerFacts facts = facts_of(kernel);
  std::vector<Inference::TileChoice> choices;
  for (const ir::Buffer& buffer : kernel.allocations) {
    const auto found = inference.tiles.find(buffer.get());
    if (found == inference.tiles.end() || buffer->rank() < 2 || buffer->base || viewed.contains(buffer.get())) continue;
    const layout::SharedLayout& tile = found->second;
    const int64_t bits = tile.element_bits(), padding = std::max<int64_t>(1, 32 / bits);
    if (tile.size() != layout::volume(tile.shape()) || is_as_requested(inference, buffer.get())) continue;
    if (of_operators.contains(buffer.get()) || !is_slow(buffer, users, facts, inference)) continue;
    auto padded = layout::SharedLayout::padded(tile.shape(), bits, padding);
    if (bytes - tile.bytes() + padded.bytes() <= inference.machine.block_shared_bytes)
      choices.push_back({buffer, std::move(padded), "rows padded by a word"});
    auto swizzled = layout::conflict_free_layout(tile.shape(), bits);
    if (tile.span() == layout::SwizzleSpan::none && swizzled.span() != layout::SwizzleSpan::none)
      choices.push_back({buffer, std::move(swizzled), "swizzled"});
  }
  return choices;
}

}  // namespace tilepilot::targets::gpu
