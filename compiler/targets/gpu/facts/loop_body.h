// The statements of a parallel loop's iteration, as far as lanes might do them side by side: whether they are such that
// neighbours' accesses can become one, whatever their layouts are.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

// Whether the statement adds to an element of global memory atomically, of a type that neighbours can be added to by
// one instruction where the machine has it.
bool is_plain_sum(const ir::Stmt& stmt);

// `T.atomic_addx4` in parallel loops: where its lanes are all that a loop does, under conditions or not, they become
// iterations, whose neighbours vectors add; else one statement each.
ir::Kernel with_lanes_of_sums(const ir::Kernel& kernel);

// A parallel loop that does nothing but under a condition: the condition and the loop without it, which is straight
// (see LoopBody) and writes nothing that the condition reads. Lanes for which the condition is the same can do it side
// by side.
struct GuardedLoop {
  ir::Expr guard;
  ir::For loop;
};
std::optional<GuardedLoop> guarded_loop(const ir::For& loop, bool adds_vectors);

class LoopBody {
 public:
  // `adds_vectors`: the machine does. @pre it is a parallel or vectorized loop
  LoopBody(const ir::For& loop, bool adds_vectors);

  const std::vector<ir::Stmt>& statements() const { return statements_; }
  // Whether they do no more than compute and store, or add as vectors, which lanes can do side by side.
  bool is_straight() const { return is_straight_; }
  // Whether the expression loads something that the loop writes.
  bool is_written(const ir::Expr& expr) const;
  bool mentions_values(const ir::Expr& expr) const { return ir::mentions(expr, values_); }

  // How often the memory of a buffer is loaded from or stored to.
  int accesses(const ir::Buffer& buffer) const;
  // Whether lanes may move the buffer's elements together: each does one thing after the other on elements of its own,
  // so that all may load first and store last.
  bool may_move_together(const ir::Buffer& buffer) const;
  // The loads of tensors, where the loop also stores to tensors, that may come before the stores of all iterations;
  // none if an iteration's take more registers than `bytes`.
  std::vector<ir::Expr> early_loads(int64_t bytes) const;

 private:
  struct Count {
    int loads = 0, stores = 0;
  };
  struct Access {
    ir::Buffer buffer;
    std::vector<ir::Expr> indices;
    bool stores;
  };
  std::vector<ir::Stmt> statements_;
  ir::Variables values_;  // of lets
  bool is_straight_ = true;
  std::unordered_map<const ir::BufferData*, Count> counts_;  // by memory
  std::vector<Access> accesses_;                             // plain ones, in order
  std::unordered_map<const ir::VarData*, int64_t> extents_;  // of the loop's variables

  void note(const ir::Stmt& stmt);
  Count count(const ir::Buffer& buffer) const;
  bool loads_first(const ir::Buffer& buffer) const;
  bool are_apart(const Access& a, const Access& b) const;
};

}  // namespace tilepilot::targets::gpu
