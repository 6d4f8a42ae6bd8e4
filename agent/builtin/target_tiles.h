// The sizes of tiles that suit a target: caches of a CPU, registers and shared memory of a GPU's blocks.
#pragma once

#include <string_view>

#include "agent/builtin/product_prologue.h"
#include "agent/builtin/tile_plan.h"

namespace tilepilot::agent::builtin {

struct TargetTiles {
  TileSizes tiles;
  ProductTiles products;
};

// `target`: as `--target` names it, but `auto`.
TargetTiles tiles_for(std::string_view target);

}  // namespace tilepilot::agent::builtin
