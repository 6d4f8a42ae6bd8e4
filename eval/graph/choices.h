// Which outputs of a model depend on which of equal elements an operator chooses. PyTorch promises the first for a
// largest and a least element, gives the last so far in `cummax` and `cummin`, on every device, and promises nothing
// for sorting and pooling.
#pragma once

#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

// Whether it is said which of equal elements a node chooses: the first for the place of a largest or least one, the
// last for that of a running one, or the order that a stable sort keeps.
bool keeps_order(const GraphNode& node);

// By tensor of the graph's outputs, in order. Values are not open: those of equal elements are the same.
std::vector<bool> open_outputs(const Graph& graph);

}  // namespace tilepilot::eval
