// TMA store epilogue (sm_90a): whole tiles are stored by TMA. The fragments of tensor cores hold a few bytes of a row
// in each thread, so that threads would write parts of sectors: they go through a tile in shared memory. Where
// TMA cannot store that tile, as in tensors whose rows are no multiples of 16 bytes, threads copy it row by row.
// Fragments of which a warp writes whole lines do not: the way through shared memory costs two barriers. Tiles that a
// program copies from shared memory itself are stored by TMA, too.
#pragma once

#include <optional>

#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

struct StoreOptions {
  bool persistent = false;  // the outermost loop is over blocks of the program's grid: each writes its own elements
  bool low_memory = false;  // tiles go through shared memory by parts, one after the other
  ir::Sync sync = {};       // of the threads
};

// With CopyMode::bulk_store and waits for that, and the tiles that this needs; none where there is nothing to gain.
// `decisions` gets why the threads make other copies to tensors.
// @pre copies are no loops yet, `inference` has the layouts of the kernel's fragments
std::optional<ir::Kernel> store_by_tma(const ir::Kernel& kernel, const Inference& inference,
                                       const StoreOptions& options, std::vector<Decision>& decisions);

// Whether nothing in the kernel comes after its bulk stores that their tensors' elements must be there for.
bool are_last_words(const ir::Stmt& body, bool persistent);

}  // namespace tilepilot::targets::gpu
