// Which accesses of a parallel loop's lanes are vectors: several neighbouring elements that a thread moves at once. And
// which stores a warp makes together.
#pragma once

#include <optional>

#include "compiler/targets/cuda/lower.h"
#include "compiler/targets/cuda/matrix_stores.h"

namespace tilepilot::targets::cuda {

struct Vector {
  ir::Buffer buffer;
  std::vector<ir::Expr> start;  // indices of the first lane
  int64_t elements = 1;         // at once: a power of two, in 16 bytes at most
  ir::Expr condition;           // when it is in bounds, all of it; null if always
};

struct VectorChoice {
  std::optional<Vector> vector;
  std::string obstacle;  // why there is none, or none of 16 bytes; "" if it has 16
};

// For an access that lane `lane` of `lanes` makes with these indices. None if lanes do not walk along the last axis, or
// an address may not be a multiple of at least two elements.
// @post elements divides lanes, and the vector starts at a multiple of it, within one row
VectorChoice vector_access(const Lowering& lowering, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices,
                           const ir::Var& lane, int64_t lanes);

// The loop's stores that stmatrix makes where their tiles lie, on this architecture.
MatrixStores matrix_stores(const Lowering& lowering, const ir::For& loop, const layout::Fragment& fragment);

// When indices lie in their buffer, a conjunction; null if always.
ir::Expr bounds_condition(const Lowering& lowering, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

}  // namespace tilepilot::targets::cuda
