// The order of work inside a fused kernel. A reduction ends a phase: what depends on it belongs to a later one. Between
// phases, values either stay in the tile or are computed again.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "agent/builtin/one_pass.h"

namespace tilepilot::agent::builtin {

struct Phase {
  std::vector<int> statistics;  // values without reduced axes to compute first, from reductions before
  std::vector<int> statistic_outputs;
  std::vector<int> stored;          // values of the whole tile to write into tiles
  std::vector<int> outputs;         // values of the whole tile to write to memory
  std::vector<int> reductions;      // run last
  std::optional<OnePass> one_pass;  // instead of two reductions, in two phases
};

struct PhasePlan {
  std::vector<Phase> phases;
  std::map<int, int> level;       // member -> phase that computes it
  std::set<int> kept;             // members and leaves that stay in a tile over several phases
  std::map<int, int> last_phase;  // tile value -> last phase that reads it
};

PhasePlan plan_phases(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles);

// True if the value varies along reduced axes (or, without reductions, always).
bool fills_tile(const Group& group, int value);

}  // namespace tilepilot::agent::builtin
