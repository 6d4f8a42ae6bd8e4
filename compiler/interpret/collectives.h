// Which statements the threads of a block do together, and which buffers each thread therefore has for itself.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/ir/effects.h"

namespace tilepilot::interpret {

class Session;

// Whether threads run for themselves: there are thread variables, or roles.
bool has_threads(const ir::Kernel& kernel);
// The roles of a kernel that is nothing but these; else null.
const ir::Concurrent* concurrent_roles(const ir::Kernel& kernel);

// Tile operators, parallel loops, barriers of the block, reductions over threads and shuffles. A copy or fill with a
// local buffer is each thread's own.
bool is_collective(const ir::Stmt& stmt);

// Which threads take part in a collective operation, where conditions on the thread index and roles leave some out.
using CollectiveGroups = std::unordered_map<const ir::StmtNode*, std::vector<bool>>;
CollectiveGroups collective_groups(Session& session, const ir::Kernel& kernel);

// Local buffers, and fragments that no collective operation accesses; a view goes with what it views.
ir::BufferSet thread_private_buffers(const ir::Kernel& kernel);

}  // namespace tilepilot::interpret
