// For a kernel with thread variables: which statements its threads run together, and which values are therefore the
// same for all of them.
#pragma once

#include <unordered_set>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

struct Uniformity {
  // Tile operators, parallel loops, barriers and waits for them, control flow around them, and stores to what that
  // control flow reads.
  std::unordered_set<const ir::StmtNode*> collective;
  // Lets that collective statements read: evaluated once for the block.
  std::unordered_set<const ir::VarData*> shared_lets;
  // Buffers of which each thread has a copy: local ones that collective statements do not read, and fragments that only
  // threads use.
  std::unordered_set<const ir::BufferData*> thread_private_buffers;
};

// `unsupported_tile_feature` if threads may diverge at a collective operation.
Result<Uniformity> find_uniformity(const ir::Kernel& kernel);

// For targets that keep a fragment of which threads name elements in memory that they share. `unsupported_tile_feature`
// where several threads write to one element of it, but for the same value that does not depend on the element.
Status check_thread_stores(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
