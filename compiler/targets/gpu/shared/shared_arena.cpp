#include "compiler/targets/gpu/shared/shared_arena.h"

#include <algorithm>

#include "compiler/ir/effects.h"

namespace tilepilot::targets::gpu {
namespace {

struct TileUse {
  const ir::BufferData* tile;
  int64_t first = INT64_MAX, last = -1;
};

// Numbers statements in order, those of a loop alike.
class Uses {
 public:
  Uses(const ir::Kernel& kernel, const Inference& inference) : inference_(inference) {
    for (const ir::Buffer& buffer : kernel.allocations)
      if (buffer->scope == ir::Scope::shared && !buffer->base) uses_.push_back({buffer.get()});
    enter(kernel.body);
  }
  const std::vector<TileUse>& all() const { return uses_; }

 private:
  const Inference& inference_;
  std::vector<TileUse> uses_;
  int64_t now_ = 0;

  void note(const ir::Buffer& buffer) {
    for (TileUse& use : uses_)
      if (use.tile == ir::memory_of(buffer)) use.first = std::min(use.first, now_), use.last = std::max(use.last, now_);
  }

  void note_all(const ir::Stmt& stmt) {
    ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool) { note(buffer); });
    ir::walk(
        stmt,
        [&](const ir::Stmt& part) {
          if (const auto scratch = inference_.scratch_buffers.find(part.get());
              scratch != inference_.scratch_buffers.end())
            note(scratch->second);
        },
        [](const ir::Expr&) {});
  }

  void enter(const ir::Stmt& stmt) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const ir::Stmt& part : list->body) enter(part);
      return;
    }
    note_all(stmt);
    ++now_;
  }
};

}  // namespace

bool SharedArena::share(const ir::BufferData* a, const ir::BufferData* b) const {
  if (a == b) return true;
  const auto first = places.find(a), second = places.find(b);
  return first != places.end() && second != places.end() && first->second.overlaps(second->second);
}

SharedArena arrange_tiles(const ir::Kernel& kernel, const Inference& inference,
                          const std::unordered_set<const ir::BufferData*>& lasting) {
  SharedArena arena;
  std::vector<TileUse> uses = Uses(kernel, inference).all();
  for (TileUse& use : uses)
    if (lasting.contains(use.tile)) use.last = INT64_MAX;
  // The largest first: what is placed later fits into the gaps.
  std::stable_sort(uses.begin(), uses.end(), [&](const TileUse& a, const TileUse& b) {
    return inference.tiles.at(a.tile).bytes() > inference.tiles.at(b.tile).bytes();
  });
  std::vector<std::pair<TileUse, SharedArena::Place>> placed;
  for (const TileUse& use : uses) {
    const layout::SharedLayout& memory = inference.tiles.at(use.tile);
    const int64_t alignment = memory.alignment();
    SharedArena::Place place{0, (memory.bytes() + 15) / 16 * 16};
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [other, there] : placed) {
        const bool together = use.first <= other.last && other.first <= use.last;
        if (!together || !place.overlaps(there)) continue;
        place.offset = (there.offset + there.bytes + alignment - 1) / alignment * alignment;
        moved = true;
      }
    }
    placed.emplace_back(use, place);
    arena.places.emplace(use.tile, place);
    arena.bytes = std::max(arena.bytes, place.offset + place.bytes);
  }
  return arena;
}

}  // namespace tilepilot::targets::gpu
