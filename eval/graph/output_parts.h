// Which parts of a model's outputs were made apart and then joined: each has a scale of its own by which errors are
// judged, so that a part of small numbers is not judged by a neighbour of large ones.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

struct OutputPart {
  int64_t axis = 0, begin = 0, length = 0;
};

// By tensor of the graph's outputs, in order; empty: the output is one piece.
std::vector<std::vector<OutputPart>> output_parts(const Graph& graph);

}  // namespace tilepilot::eval
