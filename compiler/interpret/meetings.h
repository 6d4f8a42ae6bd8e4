// Which statements the threads of a block do together, and which buffers each thread therefore has for itself.
#pragma once

#include <unordered_set>

#include "compiler/ir/stmt.h"

namespace tilepilot::interpret {

using BufferSet = std::unordered_set<const ir::BufferData*>;

// Tile operators, parallel loops, barriers and reductions over threads. A copy or fill with a local buffer is each
// thread's own.
bool is_meeting(const ir::Stmt& stmt);

// Local buffers, and fragments that no meeting touches; a view goes with what it views.
BufferSet own_buffers(const ir::Kernel& kernel);

// The buffers, views apart, that the expressions and regions of a statement and those below it read and write.
struct Touched {
  BufferSet read, written;
};
Touched touched_by(const ir::Stmt& stmt);

const ir::BufferData* root_of(const ir::BufferData& buffer);

}  // namespace tilepilot::interpret
