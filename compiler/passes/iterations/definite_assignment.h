// Whether an iteration of a loop reads of a local buffer only what it wrote before: definite assignment, element by
// element. Sound: where it cannot tell, it says no.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// `memory` is no view; what views of it do counts.
bool writes_before_reading(const ir::For& loop, const ir::Buffer& memory);

}  // namespace tilepilot::passes
