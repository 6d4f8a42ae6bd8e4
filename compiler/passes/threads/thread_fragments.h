// Fragments that threads address by element. A fragment outside tile operators is replicated: each thread holds all of
// it. If threads store different values, and tile operators at most fill it or copy to and from it, it is an array of
// each thread's own, and these are what each thread does; so it is if threads update it and tile operators do not name
// it. If all of them store the same, that is one store.
#pragma once

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Fragments of the first kind become local buffers, stores of the second kind parallel loops of one iteration, which
// the threads do together. What is neither stays.
ir::Program thread_fragments(const ir::Program& program);

}  // namespace tilepilot::passes
