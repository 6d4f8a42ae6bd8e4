// What pipelined loops are made of: the loads that may run iterations ahead of the rest, and the ring of tiles that
// these fill in turn. A load is a copy of a box, or a parallel loop that copies element by element (element_copies.h).
// How the copies are set among the iterations is software_pipeline.h's business where all threads do both, and
// warp_specialize.h's where some threads do nothing else.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

bool is_pipelined(const ir::Stmt& stmt);

// The two ends of a load.
ir::Buffer tile_of_load(const ir::Stmt& load);
ir::Buffer tensor_of_load(const ir::Stmt& load);
// Why TMA cannot make it; "" if it can.
std::string tma_obstacle_of_load(const ir::Stmt& load);

class PipelinedLoops {
 public:
  // `shares`: multicast loads may run ahead, too; their issuer waits for all blocks that they are for.
  PipelinedLoops(const ir::Kernel& kernel, const Machine& machine, bool shares = false);

  // An iteration's loads that may run ahead, and the rest of it, each in order; why other loads may not. Those ahead
  // name nothing that the iteration computes.
  struct Parts {
    ir::Expr condition;  // of all of the iteration, known before it; null: always
    std::vector<ir::Stmt> ahead, rest;
    std::vector<Decision> decisions;
  };
  // @pre the loop is pipelined
  Parts parts(const ir::For& loop) const;

  // Whether a copy that is a statement of the kernel's body itself may be made by others than those who use its tile.
  bool may_be_preloaded(const ir::Stmt& copy) const;

  // The rest of an iteration, if that is GEMMs of tiles in shared memory that may be asynchronous, each into sums of
  // its own, as such; else none.
  std::vector<ir::Stmt> async_gemms(const std::vector<ir::Stmt>& ahead, const ir::Stmt& rest) const;

  // Whether it is a wgmma, so that its warpgroups can do other work before they wait for it.
  bool may_be_async(const ir::Stmt& stmt) const;

  // How its threads hold the sums: equal for GEMMs that hold them alike. @pre may_be_async(gemm)
  std::array<int64_t, 4> sums_layout(const ir::Stmt& gemm) const;

  int64_t threads() const { return threads_; }

  // Whether some GEMM in it becomes wgmma.
  bool uses_wgmma(const ir::Stmt& body) const;

 private:
  const Machine& machine_;
  const int64_t threads_;
  const bool shares_;
  const std::unordered_set<const ir::BufferData*> sharing_;
  const c::IntegerFacts facts_;
  const ir::Stmt whole_;

  std::string not_ahead(const ir::Stmt& load, const ir::Stmt& body) const;
  std::string not_ahead(const ir::Copy& copy) const;
  std::string not_ahead(const ir::For& gather, const ir::Stmt& body) const;
  bool may_refill(const ir::Stmt& load) const;
  std::string unsteady(const std::vector<ir::Expr>& indices, const ir::Stmt& body) const;
};

// The GEMM, done when `wait_gemms` says so.
ir::Stmt asynchronous(const ir::Stmt& gemm);

// Of a thread, for a fragment that so many share; and for all fragments of the kernel.
int64_t registers_of_fragment(const ir::BufferData& fragment, int64_t threads);
int64_t registers_of_fragments(const ir::Kernel& kernel);

using RingSlots = std::unordered_map<const ir::BufferData*, ir::Buffer>;  // of a tile: [stages, ...]

// Tiles arrive by TMA, or by the threads' own asynchronous copies. Iteration k uses slot k mod stages.
struct Ring {
  std::vector<ir::Stmt> copies;
  RingSlots slots;
  int64_t stages;
  ir::Buffer full;    // of TMA: a barrier for each slot, else null
  ir::Buffer phases;  // bit s: the parity of slot s that `full` is waited for; null if the iteration tells it

  Ring(std::vector<ir::Stmt> ahead, int64_t num_stages);

  // Requests for tiles become requests for slots, which lie one after the other.
  void move_requests(ir::Kernel& kernel) const;
  // Of each copy: who makes it, and what keeps it from something faster, or "".
  std::vector<Decision> decisions(const std::string& by, const std::string& obstacle) const;

  ir::Expr slot_of(const ir::Expr& k) const;
  ir::Stmt in_slot(const ir::Expr& k, const ir::Stmt& stmt) const;
  // The copies of iteration `k` into its slot, as a group or for its barrier.
  std::vector<ir::Stmt> copies_of(const ir::Var& var, const ir::Expr& k) const;
  // Until the tiles of iteration `k` are there.
  void wait_for(const ir::Expr& k, Span span, std::vector<ir::Stmt>& out) const;
};

// A hardware barrier a slot, and a word whose bit s is the parity in which slot s is waited for.
ir::Buffer slot_barriers(const std::string& name, int64_t slots, int64_t arrivals, Span span);
ir::Buffer slot_phases(const std::string& name, Span span);

// Waits for the barrier of a slot in the parity that bit `slot` of `phases` says, which the next wait finds changed.
void wait_for_phase(const ir::Buffer& barriers, const ir::Buffer& phases, const ir::Expr& slot, Span span,
                    std::vector<ir::Stmt>& out);

}  // namespace tilepilot::targets::gpu
