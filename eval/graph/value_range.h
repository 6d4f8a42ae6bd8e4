// In which interval every element of a graph's values lies, for all inputs and weights: from activations, clamps and
// numbers alone.
#pragma once

#include <limits>
#include <vector>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_point() const { return low == high; }
  bool is_bounded() const {
    return low > -std::numeric_limits<double>::infinity() || high < std::numeric_limits<double>::infinity();
  }
  bool operator==(const Range&) const = default;
};

// By value id, of finite inputs and weights; what nothing is known of is everything.
std::vector<Range> value_ranges(const GraphUses& uses);

}  // namespace tilepilot::eval
