// Which axis of an operator's results each axis of its operands becomes, where the operator treats places along that
// axis apart from each other: a part of the operands along it gives the same part of the results. One table, a row an
// operator; what is in no row is not known to have such axes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {

constexpr int kWhole = -1;  // every result may depend on every place along the axis

struct OperandAxes {
  int value = -1;
  std::vector<int> to;  // by axis of the operand: an axis of the results, or kWhole
};

struct NodeAxes {
  // Tensors that are not mentioned are needed whole.
  std::vector<OperandAxes> operands;
  // The argument that lists the results' extents; empty: none does.
  std::string_view sizes = {};
  size_t sizes_position = 0;
  bool repeats = false;   // along an axis that comes from no operand, all places are alike
  bool reshapes = false;  // elements keep their row-major order; `operands` holds the only one, without axes
};

// nullopt: the operator is in no row, or these arguments are none that its row knows.
std::optional<NodeAxes> axes_of(const GraphUses& uses, const GraphNode& node);
// Whether an operator gives its results memory of their own, so that writing there changes nothing else.
bool makes_fresh_memory(const GraphNode& node);

}  // namespace tilepilot::eval
