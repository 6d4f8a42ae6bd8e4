#include "compiler/passes/tile_liveness.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

bool loads(const Expr& e, const Buffer& tile) {
  bool found = false;
  walk(e, [&](const Expr& part) {
    const auto* n = std::get_if<Load>(&part->node);
    found |= n && n->buffer == tile;
  });
  return found;
}

bool covers(const Region& region, const Buffer& tile) {
  if (region.buffer != tile) return false;
  for (size_t axis = 0; axis < tile->rank(); ++axis) {
    if (constant_int(region.start[axis]) != 0 || constant_int(tile->shape[axis]) != region.extent[axis]) return false;
  }
  return true;
}

bool repeats(const Stmt& s) {
  return s && (std::holds_alternative<For>(s->node) || std::holds_alternative<While>(s->node));
}

}  // namespace

void TileLiveness::enter(const std::vector<Stmt>& body, const Stmt& parent) { road_.push_back({&body, parent, 0}); }

TileLiveness::Effect TileLiveness::effect(const Stmt& stmt, const Buffer& tile) {
  bool touched = false, read = false, jumps = false;
  walk(
      stmt,
      [&](const Stmt& s) {
        jumps |= std::holds_alternative<Break>(s->node) || std::holds_alternative<Continue>(s->node);
        const auto* store = std::get_if<Store>(&s->node);
        touched |= store && store->buffer == tile;
        const Accesses regions = region_accesses(s);
        for (const Region* r : regions.reads) read |= r->buffer == tile;
        for (const Region* r : regions.writes) touched |= r->buffer == tile;
      },
      [&](const Expr& e) {
        const auto* n = std::get_if<Load>(&e->node);
        read |= n && n->buffer == tile;
      });
  // A jump may pass by what follows here.
  if (read || jumps) return Effect::reads;
  if (!touched) return Effect::none;
  // Writing a part leaves the rest as it was.
  const Accesses own = region_accesses(stmt);
  const bool whole =
      std::any_of(own.writes.begin(), own.writes.end(), [&](const Region* r) { return covers(*r, tile); });
  return whole ? Effect::overwrites : Effect::none;
}

TileLiveness::Effect TileLiveness::first_effect(const std::vector<Stmt>& body, size_t begin, size_t end,
                                                const Buffer& tile) {
  for (size_t k = begin; k < end; ++k) {
    const Effect found = effect(body[k], tile);
    if (found != Effect::none) return found;
  }
  return Effect::none;
}

bool TileLiveness::is_dead(const Buffer& tile) const {
  for (auto place = road_.rbegin(); place != road_.rend(); ++place) {
    const Effect after = first_effect(*place->body, place->next, place->body->size(), tile);
    if (after == Effect::reads) return false;
    if (after == Effect::overwrites) return true;
    if (!repeats(place->parent)) continue;
    // Round again, and out of the loop.
    const auto* repeated = std::get_if<While>(&place->parent->node);
    if (repeated && loads(repeated->condition, tile)) return false;
    if (first_effect(*place->body, 0, place->next, tile) == Effect::reads) return false;
  }
  return true;
}

}  // namespace tilepilot::passes
