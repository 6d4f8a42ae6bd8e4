// TMA pipeline: a ring of tiles that a producer loads by TMA while consumers use them, and the barriers between the
// two. The producer reloads a slot when all consumer warps have released it. The first block of a multicast mask issues
// the load, when the other blocks have released the slot, too; each block counts its own bytes.
#pragma once

#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

// The consumers of a block's tiles, and the rank of the block in its cluster.
struct TileConsumers {
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

class TmaPipeline {
 public:
  using Stmts = std::vector<ir::Stmt>;

  TmaPipeline(Stmts copies, int64_t stages, TileConsumers consumers);

  const Ring& ring() const { return ring_; }
  const std::vector<ir::Buffer>& allocations() const { return allocations_; }
  // What each role has to set before: the consumers, and the producer.
  Phases full_phases() const { return {ring_.phases, 0}; }
  std::vector<Phases> empty_phases() const;
  // Whether some loads are for several blocks.
  bool is_shared() const { return !shared_.empty(); }
  std::vector<Decision> decisions() const;

  // By consumers: iteration `number` is done with its slot.
  ir::Stmt release(const ir::Expr& number) const;
  // By the producer: loads the tiles of iteration `k`, for which the copies say `var`, as soon as its slot is free.
  Stmts issue(const ir::Var& var, const ir::Expr& k) const;
  // Statements that use tiles which a block needs once: the slot is released when all that used them is done.
  Stmts with_tiles(const Stmts& consumer) const;

 private:
  // Multicast loads, by mask.
  struct Shared {
    int64_t mask;
    ir::Buffer others, phases;
    int64_t first() const;
  };

  TileConsumers consumers_;
  Ring ring_;
  ir::Buffer empty_, empty_phases_;
  std::vector<Shared> shared_;
  std::vector<ir::Buffer> allocations_;

  ir::Buffer allocated(ir::Buffer buffer);
  int64_t all_slots() const { return (int64_t{1} << ring_.stages) - 1; }
  void add_shared(int64_t mask, Span span);
  void tell_first(const ir::Expr& slot, Span span, Stmts& out) const;
  void wait_for_others(const ir::Expr& slot, Span span, Stmts& out) const;
};

}  // namespace tilepilot::targets::gpu
