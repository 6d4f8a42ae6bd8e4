// Back-to-back GEMM overlap: pipelined loops of two GEMMs, the second of which multiplies what becomes of the first
// one's accumulators, as in attention. The second GEMM of an iteration may start after the first GEMM of the next one,
// so that the work on the accumulators overlaps with it (FlashAttention-3, 3.2: "intra-warpgroup overlap"):
//
//   before, first GEMM of 0, wait for it, beside, after
//   for k from 1: before; start the first GEMM of k, then the second of k - 1; wait for the first one alone;
//                 beside; wait for the second one; after
//   second GEMM of the last iteration
//
// Operands keep their order: values are the same bit for bit.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

// An iteration, in order; both GEMMs are asynchronous.
struct GemmOverlap {
  std::vector<ir::Stmt> before;
  ir::Stmt first;
  std::vector<ir::Stmt> beside;  // neither needs nor changes what the second GEMM uses or accumulates
  std::vector<ir::Stmt> after;
  ir::Stmt second;
};

// `rest`: of an iteration, beside the copies `ahead` of it. `registers`: those that a thread has. Else why not, or ""
// where there are no two GEMMs.
// @post before, first, beside, after and second hold the statements of `rest`, each once
std::variant<GemmOverlap, std::string> find_gemm_overlap(const PipelinedLoops& loops,
                                                         const std::vector<ir::Stmt>& ahead,
                                                         const std::vector<ir::Stmt>& rest, int64_t registers);

// Tiles in a ring that a part of the iteration reads, and how it gives a slot back; null: it needs none.
struct OverlapTiles {
  const Ring* ring = nullptr;
  std::function<ir::Stmt(const ir::Expr& k)> release;
};
struct TilesOfOverlap {
  OverlapTiles first, work, second;  // of either GEMM alone, and of the rest of the iteration
};

// The loop as above, for those who compute.
std::vector<ir::Stmt> overlapped_loop(const ir::For& loop, const GemmOverlap& overlap, const TilesOfOverlap& tiles);

}  // namespace tilepilot::targets::gpu
