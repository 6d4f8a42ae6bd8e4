// Kernels whose threads wait for each other in different places: warp-specialised ones, and those that guard a barrier
// or a tile operator by the thread index. Their threads fall into roles, sets of threads that go the same way.
#pragma once

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Threads that exchange values directly.
inline constexpr int64_t kWarp = 32;

// Some threads of a block: where they begin along each axis of it, and what they do.
struct Role {
  ir::Kernel kernel;
  std::vector<int64_t> start;
};

// What each role does, as a kernel of its threads alone; `Roles` and conditions that tell roles apart are decided. What
// several roles do together, the first of them does between two barriers. Variables, local buffers and fragments of one
// role are its own; shared tiles are the same buffers in all. One kernel, as it was, where all threads go one way.
// `unsupported_tile_feature` where roles cannot be told apart.
Result<std::vector<Role>> split_roles(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
