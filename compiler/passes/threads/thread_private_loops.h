// Where threads run for themselves: copies and fills that touch a thread's own array are that thread's own loops.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

ir::Stmt thread_private_loops(const ir::Stmt& body);

}  // namespace tilepilot::passes
