// Parallel loops that copy elements one by one, as programs write them: `for i, j in T.Parallel(M, K): tile[i, j] =
// X[row + i, j]`. What is a box on both sides is a copy in other words, and becomes one, so that it has all of a copy's
// ways. Others gather: where an element comes from is read from a tensor, or is no box.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::targets::gpu {

// Each iteration stores one element of `source`, or zero where `condition` is false. Indices name the loop's variables.
struct ElementCopy {
  ir::Buffer source;
  std::vector<ir::Expr> from;
  ir::Buffer destination;
  std::vector<ir::Expr> to;
  ir::Expr condition;  // null: always
};
// Nullopt if the loop does anything else. Elements may change their type on the way.
std::optional<ElementCopy> element_copy(const ir::For& loop);

// The loop with copies of one element each that are done when their group is. Past the ends of a tensor a copy reads
// zero: that is where elements come from for which the condition is false.
// @pre `gather` is such a loop, of a tensor of two axes or more if it has a condition
ir::Stmt as_async(const ir::Stmt& gather);
bool is_async_gather(const ir::Stmt& stmt);

// Indices and conditions name the values of integer lets of the same parallel or vectorized loop instead of their
// names, as far as the loop does not write what these are read from.
ir::Kernel with_values_in_indices(const ir::Kernel& kernel);

// Loops that copy a box between a tensor and a tile, or from a fragment to a tensor, as copies; and those that store
// what they compute of a GEMM's sums as loops that compute, and copies.
ir::Kernel with_box_copies(const ir::Kernel& kernel);

}  // namespace tilepilot::targets::gpu
