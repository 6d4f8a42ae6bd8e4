// Where shared tiles lie in a block's memory: tiles that are never in use at the same time share it. A tile is in use
// from the first statement that names it to the last; what a loop names is in use through all of the outermost loop
// around, since the next iteration may read what this one leaves.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

struct SharedArena {
  struct Place {
    int64_t offset = 0, bytes = 0;
    bool overlaps(const Place& other) const {
      return offset < other.offset + other.bytes && other.offset < offset + bytes;
    }
  };
  std::unordered_map<const ir::BufferData*, Place> places;  // of tiles that are no views
  int64_t bytes = 0;

  // Whether two buffers have memory in common.
  bool share(const ir::BufferData* a, const ir::BufferData* b) const;
};

// `lasting`: tiles that are in use until the end, once they are.
// @post places of tiles that are in use at the same time do not overlap; each starts at a multiple of its alignment
SharedArena arrange_tiles(const ir::Kernel& kernel, const Inference& inference,
                          const std::unordered_set<const ir::BufferData*>& lasting = {});

}  // namespace tilepilot::targets::gpu
