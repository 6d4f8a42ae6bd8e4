// For a kernel with thread variables: its collective operations, and which values may differ between threads.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

// What all threads do together by its kind alone: barriers and waits for them, tile operators, parallel loops.
bool is_collective(const ir::Stmt& s);
bool is_loop(const ir::Stmt& s);
bool is_jump(const ir::Stmt& s);
// Whether it may leave, or go on with, a loop that stands outside of it.
bool may_jump_out(const ir::Stmt& s);
// The statements right below.
std::vector<ir::Stmt> bodies(const ir::Stmt& s);

class ThreadDifferences {
 public:
  // Tile operators on local buffers are not expected: they are loops of each thread's own by now.
  explicit ThreadDifferences(const ir::Kernel& kernel);

  bool differs(const ir::Expr& e) const;
  bool differs(const std::vector<ir::Expr>& exprs) const;
  // Whether threads go different ways below: by a condition, by how often a loop runs, or by who leaves it.
  bool divides(const ir::Stmt& s) const;
  // Whether each thread may have a copy: local buffers, and fragments that only threads use.
  bool may_be_own(const ir::BufferData& buffer) const;

 private:
  void note_collective(const ir::Stmt& s);
  // A break or continue of the loop around `s` is one that not all threads take.
  bool leaves_apart(const ir::Stmt& s) const;
  void propagate(const ir::Stmt& s, bool apart);
  void propagate_here(const ir::Stmt& s, bool apart);

  bool grown_ = false;
  std::unordered_set<const ir::BufferData*> tiles_;  // tile operators and parallel loops use them
  std::unordered_set<const ir::VarData*> vars_;
  std::unordered_set<const ir::BufferData*> buffers_;
  std::unordered_set<const ir::StmtNode*> jumps_;  // that not all threads take
};

}  // namespace tilepilot::passes
