// GEMMs that threads write out: each sums up elements of its own over a serial loop, and the two factors depend on
// different loop variables.
#pragma once

#include <vector>

#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

struct GemmSide {
  ir::Expr factor;                    // float32
  std::vector<Dimension> dimensions;  // that the factor, and the element of the sum, differ in; slowest first
  // It is 0 where the program leaves the step out, instead of multiplying: the other factor must be finite then.
  bool is_guarded = false;

  bool has(const ir::Var& var) const;
  int64_t size() const;
};

// sum[element] += rows.factor * columns.factor for each step, in their order.
struct ThreadGemm {
  ir::Buffer sum;
  std::vector<ir::Expr> element;  // variables of the two sides, each once, and what is the same for all
  std::vector<Dimension> steps;   // outermost first
  GemmSide rows, columns;
  std::vector<Dimension> common;  // variables of the element that both factors differ in
};

// Finds GEMMs in one kernel, in which lets of index arithmetic stand for nothing.
class GemmFinder {
 public:
  GemmFinder(const ir::Kernel& kernel, const c::IntegerFacts& facts)
      : facts_(facts), uses_(count_uses(kernel.body)), sharing_(ir::sharing_buffers(kernel)) {}

  // What a nest of serial loops in a parallel loop over `threads` does, if that is GEMMs alone and temporaries that
  // nothing else uses; else empty.
  std::vector<ThreadGemm> find(const ir::Stmt& nest, const std::vector<Dimension>& threads) const;

 private:
  const c::IntegerFacts& facts_;
  std::unordered_map<const ir::BufferData*, int64_t> uses_;
  std::unordered_set<const ir::BufferData*> sharing_;
};

}  // namespace tilepilot::targets::cpu
