// Which of a kernel's tiles in registers, and which arrays of threads, are read where nothing is sure to have written
// them. A program order analysis of whole elements: definite assignment, by boxes. What it cannot follow counts as not
// written; what foreign functions get the address of, as written.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

struct UnwrittenRead {
  ir::Buffer buffer;  // the memory, no view of it
  Span at;            // the first such read
  bool certain;       // nothing at all is written there before
};

// In the order of the reads, each memory once.
std::vector<UnwrittenRead> unwritten_reads(const ir::Kernel& kernel);

}  // namespace tilepilot::passes
