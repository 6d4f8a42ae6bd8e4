// Pipelined loops of two products, the second of which multiplies what becomes of the first one's sums: attention,
// chains of matrix products. An iteration's second product may be started after the next one's first product, so that
// the work on those sums goes on beside it (FlashAttention-3, 3.2: "intra-warpgroup overlap"):
//
//   before, first product of 0, wait for it, beside, after
//   for k from 1: before; start the first product of k, then the second of k - 1; wait for the first one alone;
//                 beside; wait for the second one; after
//   second product of the last iteration
//
// Nothing is computed in another order than its operands ask for: values are the same bit for bit.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

// An iteration, in order; both products run on until they are waited for.
struct ProductChain {
  std::vector<ir::Stmt> before;
  ir::Stmt first;
  std::vector<ir::Stmt> beside;  // neither needs nor changes what the second product uses or sums
  std::vector<ir::Stmt> after;
  ir::Stmt second;
};

// `rest`: of an iteration, beside the copies `ahead` of it. `registers`: those that a thread has. Else why not, or ""
// where there are no two products.
// @post before, first, beside, after and second hold the statements of `rest`, each once
std::variant<ProductChain, std::string> product_chain(const PipelinedLoops& loops, const std::vector<ir::Stmt>& ahead,
                                                      const std::vector<ir::Stmt>& rest, int64_t registers);

// Tiles in a ring that a part of the iteration reads, and how it gives a slot back; null: it needs none.
struct ChainTiles {
  const Ring* ring = nullptr;
  std::function<ir::Stmt(const ir::Expr& k)> give_back;
};
struct TilesOfChain {
  ChainTiles first, work, second;  // of either product alone, and of the rest of the iteration
};

// The loop as above, for those who compute.
std::vector<ir::Stmt> chain_loop(const ir::For& loop, const ProductChain& chain, const TilesOfChain& tiles);

}  // namespace tilepilot::targets::gpu
