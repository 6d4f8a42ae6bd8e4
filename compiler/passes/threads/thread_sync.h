// Barriers that a program leaves to the compiler: where a thread may read or write an element of a shared tile or a
// reducer that another thread used since the last barrier, one of them writing, all threads of the block synchronise
// before it; so they do for an element of global memory, if a tile operator or a parallel loop stands between. These,
// reductions and shuffles do not count as barriers: what threads exchange there orders nothing else, and targets let
// them wait for those tiles alone that an operator reads or writes. What threads do under a condition that differs
// between them is cut there into several statements under that condition. Kernels with hardware barriers or roles say
// themselves who waits for whom, and stay as they are.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

ir::Program thread_sync(const ir::Program& program);

}  // namespace tilepilot::passes
