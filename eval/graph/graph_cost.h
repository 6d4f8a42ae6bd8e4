// What an exported graph costs: floating-point operations, bytes that must move, kernels that eager launches, and the
// memory that is held at once. From shapes alone.
#pragma once

#include <cstdint>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {

struct NodeCost {
  double product_flops = 0;  // of matrix products, convolutions, attention: what tensor cores can do
  double other_flops = 0;
  double bytes = 0;  // read and written by eager, each tensor once a kernel
  int launches = 0;  // kernels
};
NodeCost cost_of(const GraphUses& uses, const GraphNode& node);

struct GraphCost {
  double product_flops = 0, other_flops = 0;  // of what the outputs need
  double dead_flops = 0;                      // of the rest
  double eager_bytes = 0;
  int launches = 0;
  int64_t input_bytes = 0, weight_bytes = 0, output_bytes = 0;  // whole tensors that are used
  // What any program reads and writes at least: inputs and weights once where the outputs need them, outputs once.
  int64_t least_bytes = 0;
  // Only a part of something computed is used (the last row of a product): how much of what led to it is needed, shapes
  // alone do not tell.
  bool uses_parts = false;
  int products = 0;  // operators that the outputs need and that are products
};
GraphCost cost_of(const GraphUses& uses);

// Memory of one call beside inputs and weights: what nodes make, until its last use; outputs included.
struct LivePeak {
  int64_t eager = 0;  // in the export's types
  int64_t exact = 0;  // with float64 for every floating type
};
LivePeak live_peak(const GraphUses& uses);

}  // namespace tilepilot::eval
