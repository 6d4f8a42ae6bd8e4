// Which accesses of a parallel loop's lanes are vectors: several neighbouring elements that a thread moves at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

constexpr int64_t kAccessBytes = 16;  // that a thread moves at once, at most; as many elements if they have a byte each

struct Vector {
  ir::Buffer buffer;
  std::vector<ir::Expr> start;  // indices of the first lane
  int64_t elements = 1;         // at once: a power of two, in `kAccessBytes` at most
  ir::Expr condition;           // when it is in bounds, all of it; null if always
};

struct VectorChoice {
  std::optional<Vector> vector;
  std::string obstacle;  // why there is none, or none of 16 bytes; "" if it has 16
};

// What is known of indices, and where shared tiles lie.
struct Surroundings {
  const c::IntegerFacts& facts;
  const decltype(Inference::tiles)& tiles;
};

// Elements from row to row, one number for each axis but the last; none if they are not known.
std::optional<std::vector<Multiple>> row_steps(const Surroundings& around, const ir::Buffer& buffer);

// The index with other variables, of the same factors, in the place of quotients and remainders in which no lane
// stands: for a sum of which only multiples matter.
ir::Expr unknowns_apart(const ir::Expr& index, const ir::Var& lane);

// For an access that lane `lane` of `lanes` makes with these indices. None if lanes do not walk along the last axis, or
// an address may not be a multiple of at least two elements.
// @post elements divides lanes, and the vector starts at a multiple of it, within one row
VectorChoice vector_access(const Surroundings& around, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices,
                           const ir::Var& lane, int64_t lanes);

// Lengths of rows that are known at launch alone, as multiples of what is: of the tensors that a statement names.
using RowLengths = std::vector<std::pair<ir::Var, int64_t>>;
RowLengths row_lengths_of(const ir::Stmt& stmt);

// Whether all of `lanes` lanes, the first of which stands at a multiple of them, find the same: comparisons of what
// they walk along with multiples of their number, such as checks of bounds.
struct LaneCondition {
  const c::IntegerFacts& facts;
  const RowLengths& lengths;
  const ir::Var& lane;
  int64_t lanes = 1;
};
bool is_same_for_lanes(const LaneCondition& where, const ir::Expr& condition);

// The lanes of a loop that is dealt out so: the first digit of a thread's registers, where that runs through neighbours
// along one axis, all of which are iterations, or none.
struct Lanes {
  int64_t count = 1;  // 1: there are none
  size_t axis = 0;
};
Lanes lanes_of(const layout::Fragment& fragment);

}  // namespace tilepilot::targets::gpu
