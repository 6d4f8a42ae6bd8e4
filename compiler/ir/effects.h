// Memory effects of statements: which buffers they read and write, by element or by region.
#pragma once

#include <functional>
#include <unordered_set>

#include "compiler/ir/visit.h"

namespace tilepilot::ir {

using BufferSet = std::unordered_set<const BufferData*>;

// The memory behind views.
const BufferData* memory_of(const BufferData& buffer);
inline const BufferData* memory_of(const Buffer& buffer) { return memory_of(*buffer); }

// Receives a buffer, by the name that stands there, which may be a view's, and whether it is written.
using OnEffect = std::function<void(const Buffer& buffer, bool writes)>;
// Of each element and region that the statement, or one below it, reads or writes; of what an expression loads. An
// operator that accumulates reads what it writes.
void each_effect(const Stmt& stmt, const OnEffect& on_effect);
void each_effect(const Expr& expr, const OnEffect& on_effect);
// Of the statement itself alone: not of those below it, nor of what its expressions load.
void each_own_effect(const Stmt& stmt, const OnEffect& on_effect);

struct Effects {
  BufferSet reads, writes;
  void add(const Effects& other);
};
Effects effects_of(const Stmt& stmt);         // by the names that stand there
Effects memory_effects_of(const Stmt& stmt);  // behind views
// Whether the order of what has them matters.
bool depend(const Effects& a, const Effects& b);

// How often it names the buffer, by this name; or writes it.
int count_accesses(const Stmt& stmt, const BufferData* buffer);
int count_writes(const Stmt& stmt, const BufferData* buffer);

// Whether it names one of them.
bool accesses_any(const Stmt& stmt, const BufferSet& buffers);
// Whether it writes one that is wanted.
bool writes_any(const Stmt& stmt, const std::function<bool(const Buffer&)>& wanted);

}  // namespace tilepilot::ir
