// Copies, fills, matrix products, reductions and scans, one element after the other.
#pragma once

#include "compiler/interpret/evaluate.h"

namespace tilepilot::interpret {

// All of what it reads is read before it writes.
void run_tile_operator(const Evaluator& in, const ir::Stmt& stmt);
// Reads and changes one element; the value before.
Element run_atomic(const Evaluator& in, const ir::Atomic& atomic, Span span);

}  // namespace tilepilot::interpret
