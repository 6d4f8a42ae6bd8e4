// Layout inference: which thread holds what of each fragment, how the iterations of parallel loops are dealt out to
// threads, where the elements of shared tiles lie, and how each GEMM is computed.
//
// Three rounds, as in TileLang (Wang et al., "TileLang", 2025, section 4.2): strict, what tensor-core instructions
// demand of their operands; common, what follows from that through parallel loops and reductions; free, a partition for
// what is left, largest tile first, after each of which common follows again: contiguous vectors row by row, unless
// another partition and what follows from it cost less (layout_cost.h). Where two uses of a fragment disagree that is a
// conflict, which `stage_conflicts` resolves by another fragment, to which lanes of warps hand over what they hold, or
// through shared memory.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/layout/shared_layout.h"
#include "compiler/layout/warp_moves.h"
#include "compiler/targets/gpu/facts/decisions.h"
#include "compiler/targets/gpu/layout/gemm_plan.h"

namespace tilepilot::targets::gpu {

struct Inference {
  Machine machine = machine_of(Architecture::sm_80);
  std::unordered_map<const ir::BufferData*, layout::Fragment> fragments;
  std::unordered_map<const ir::BufferData*, layout::SharedLayout> tiles;
  std::unordered_map<const ir::StmtNode*, layout::Fragment> loops;  // parallel loops of constant extents
  std::unordered_map<const ir::StmtNode*, GemmPlan> gemms;

  std::unordered_map<const ir::StmtNode*, layout::WarpMoves> conversions;  // copies from one fragment to another

  // Shared memory through which the threads of a reduction exchange what they have, where lanes of a warp are not all;
  // among the kernel's allocations and tiles. See `allocate_reduction_scratch`.
  std::unordered_map<const ir::StmtNode*, ir::Buffer> scratch_buffers;
  bool compact_scratch = false;  // one value for all lanes that shuffles have combined, for a few more instructions

  // A statement that wants a fragment otherwise than it is held.
  struct Conflict {
    ir::Stmt stmt;
    ir::Buffer buffer;
    std::string why;
    int64_t shuffles = -1;  // that bring it there and back; -1: it has to go through shared memory
  };
  std::vector<Conflict> conflicts;
  std::vector<Decision> decisions;  // free choices, where there was something to weigh
  // What became of the layouts that the program asks for; see requested_layouts.h.
  struct Request {
    ir::Buffer buffer;
    Span span;
    std::string obstacle;  // why it is not so; "" if it is
  };
  std::vector<Request> requests;
  // What loops and reductions cost, where layouts of shared tiles are tried, and those with which they might cost less:
  // see bank_choice.h.
  int64_t cost = 0;
  struct TileChoice {
    ir::Buffer tile;
    layout::SharedLayout layout;
    std::string name;
  };
  std::vector<TileChoice> tiles_to_try;
  // Fragments that are seen in another shape, in which the same threads cannot hold them.
  std::vector<ir::Buffer> unreshaped;
};

// @pre copies and fills are parallel loops, but for asynchronous copies; operands of reductions and scans and C of
// gemms are fragments (see normalize.h)
// @post without conflicts every fragment of the kernel has a layout, and every parallel loop of constant extents that
// names one
Inference infer_layouts(const ir::Kernel& kernel, const Machine& machine);

// The threads of a block.
inline int64_t thread_count(const ir::Kernel& kernel) {
  return std::accumulate(kernel.threads.begin(), kernel.threads.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace tilepilot::targets::gpu
