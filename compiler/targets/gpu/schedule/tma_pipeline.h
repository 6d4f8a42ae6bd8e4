// A ring of tiles that threads of their own ask the copy engine for while others use them, with the barriers at which
// both sides wait: a slot is asked for again when all warps have given it back. Of a load for several blocks of the
// cluster the first of them asks, when the others have given the slot back, too; each counts its own bytes.
#pragma once

#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

// Who uses the tiles of a block, and which block of its cluster that is.
struct TileUsers {
  int64_t warps;
  ir::Var block;  // its number in the grid, where blocks of a cluster follow each other
  int64_t in_cluster;

  ir::Expr rank(Span span) const;
};

// A ring's word of phases, and what it begins with, which is what they are in when nothing has arrived.
struct Phases {
  ir::Buffer bits;
  int64_t first;
};

class FedRing {
 public:
  using Stmts = std::vector<ir::Stmt>;

  FedRing(Stmts copies, int64_t stages, TileUsers users);

  const Ring& ring() const { return ring_; }
  const std::vector<ir::Buffer>& allocations() const { return allocations_; }
  // What each side has to set before: those who use the tiles, and those who ask for them.
  Phases full_phases() const { return {ring_.phases, 0}; }
  std::vector<Phases> empty_phases() const;
  // Whether some loads are for several blocks.
  bool is_shared() const { return !shared_.empty(); }
  std::vector<Decision> decisions() const;

  // By those who use the tiles: iteration `number` is done with its slot.
  ir::Stmt give_back(const ir::Expr& number) const;
  // By the others: the tiles of iteration `k`, for which the copies say `var`, as soon as its slot is free.
  Stmts ask(const ir::Var& var, const ir::Expr& k) const;
  // Statements that use tiles which a block needs once: they are given back when all that used them is done.
  Stmts with_tiles(const Stmts& computing) const;

 private:
  // Loads for the blocks of a mask.
  struct Shared {
    int64_t mask;
    ir::Buffer others, turns;
    int64_t first() const;
  };

  TileUsers users_;
  Ring ring_;
  ir::Buffer empty_, turns_;
  std::vector<Shared> shared_;
  std::vector<ir::Buffer> allocations_;

  ir::Buffer allocated(ir::Buffer buffer);
  int64_t all_slots() const { return (int64_t{1} << ring_.stages) - 1; }
  void add_shared(int64_t mask, Span span);
  void tell_first(const ir::Expr& slot, Span span, Stmts& out) const;
  void wait_for_others(const ir::Expr& slot, Span span, Stmts& out) const;
};

}  // namespace tilepilot::targets::gpu
