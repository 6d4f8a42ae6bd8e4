// Loops of one thread whose variable says which part of a fragment a statement names, `held[i, s * 4 + j]` in a loop
// over `s`, whether they stand around the statement or in it. Threads that hold each of the parts alike find theirs in
// registers if the loop is written out.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// The kernel with those loops around and in these statements written out whose variables they name; nullopt if there is
// none, or its iterations are many, not a constant number, or may be left.
std::optional<ir::Kernel> with_parts_unrolled(const ir::Kernel& kernel, const std::vector<ir::Stmt>& statements);

}  // namespace tilepilot::targets::gpu
