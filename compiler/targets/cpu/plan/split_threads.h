// Threads that are numbered in one row and take their numbers apart, `tx // 16` and `tx % 16`, as threads in two
// dimensions.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

// The lengths of rows that threads take their numbers apart by. `kernel` has no lets of index arithmetic.
std::vector<int64_t> thread_rows(const ir::Kernel& kernel);
// The same kernel with loops over rows of that many threads.
ir::Kernel split_threads(const ir::Kernel& kernel, int64_t row);

}  // namespace tilepilot::targets::cpu
