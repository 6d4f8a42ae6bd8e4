// What statements read and write: elements and regions of buffers alike.
#pragma once

#include <functional>
#include <unordered_set>

#include "compiler/ir/visit.h"

namespace tilepilot::ir {

using BufferSet = std::unordered_set<const BufferData*>;

// The memory behind views.
const BufferData* memory_of(const BufferData& buffer);
inline const BufferData* memory_of(const Buffer& buffer) { return memory_of(*buffer); }

// Told of a buffer, by the name that stands there, which may be a view's, and whether it is written.
using OnTouch = std::function<void(const Buffer& buffer, bool writes)>;
// Of each element and region that the statement, or one below it, reads or writes; of what an expression loads. An
// operator that accumulates reads what it writes.
void each_touch(const Stmt& stmt, const OnTouch& on_touch);
void each_touch(const Expr& expr, const OnTouch& on_touch);
// Of the statement itself alone: not of those below it, nor of what its expressions load.
void each_own_touch(const Stmt& stmt, const OnTouch& on_touch);

struct Touched {
  BufferSet reads, writes;
  void add(const Touched& other);
};
Touched touched_buffers(const Stmt& stmt);  // by the names that stand there
Touched touched_memory(const Stmt& stmt);   // behind views

// How often it names the buffer, by this name; or writes it.
int count_touches(const Stmt& stmt, const BufferData* buffer);
int count_writes(const Stmt& stmt, const BufferData* buffer);

// Whether it names one of them.
bool touches_any(const Stmt& stmt, const BufferSet& buffers);
// Whether it writes one that is wanted.
bool writes_any(const Stmt& stmt, const std::function<bool(const Buffer&)>& wanted);

}  // namespace tilepilot::ir
