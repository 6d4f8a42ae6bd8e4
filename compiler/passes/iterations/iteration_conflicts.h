// Conflicting updates: iterations of a parallel loop that read and change the same element, `a[j // 4] += x[j]`. Such
// iterations must not run at the same time, nor as lanes of one vector: a load, an operation and a store lose what
// others do in between. What a loop does is looked at with its lets replaced by their values.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/ir/search.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// Elements that iterations of one loop name. Sound: where two iterations may name the same element it says so, also
// where it cannot tell.
class IterationSpace {
 public:
  explicit IterationSpace(const ir::For& loop);

  // With lets replaced by their values, but for those that load, or are very long.
  ir::Expr expanded(const ir::Expr& expr) const;
  // Whether two iterations may name the same element by these indices.
  bool may_conflict(const std::vector<ir::Expr>& indices) const { return may_conflict(indices, loop_.vars); }
  // Of iterations that differ in these variables of the loop alone.
  bool may_conflict(const std::vector<ir::Expr>& indices, const std::vector<ir::Var>& vars) const;

 private:
  const ir::For& loop_;
  std::unordered_map<const ir::VarData*, ir::Expr> lets_;
  std::unordered_map<const ir::VarData*, int64_t> extents_;  // of loops, this one and those inside; 0 is unknown
  ir::Variables inside_;                                     // bound by the body
  std::unordered_set<const ir::BufferData*> written_;        // memory

  friend class ConflictTest;
};

// An element that the loop changes and reads, at the same indices (with lets replaced).
struct Update {
  ir::Buffer buffer;
  std::vector<ir::Expr> indices;
  ir::Stmt store;
};

// The updates of the loop's body that two iterations may do to one element. Atomic operations are none.
std::vector<Update> conflicting_updates(const ir::Stmt& loop);

}  // namespace tilepilot::passes
