// Scans as loops of all threads: each row falls into parts, a thread for each; the last elements of the parts are
// scanned in logarithmically many steps (Hillis and Steele, "Data Parallel Algorithms", CACM 29(12), 1986), and what
// came before a part is added to its elements.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// The body without scans. What it allocates joins `allocations`.
ir::Stmt with_parallel_scans(const ir::Kernel& kernel, std::vector<ir::Buffer>& allocations);

}  // namespace tilepilot::targets::gpu
