// How values are combined into one: of a tile along an axis, or of the threads of a block.
#pragma once

#include <optional>

#include "compiler/interpret/element.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::interpret {

// The reduction that combines by a binary operator; none for a product.
std::optional<ir::ReduceOp> reduction_by(ir::BinaryOp op);

struct Reduction {
  ir::ReduceOp op;
  bool keeps_nan = false;  // else max and min pass over NaN

  // Small floats are combined in float32.
  static ir::DType accumulator(ir::DType type);
  Element identity(ir::DType type) const;
  Element step(const Element& sum, const Element& next) const;
  // Combines two results.
  Element join(const Element& a, const Element& b) const;
};

}  // namespace tilepilot::interpret
