// Changed weights: other values a model could have, and values moved by less than a rounding.
#pragma once

#include "eval/torch/replay.h"

namespace tilepilot::eval {

// A copy in which every floating parameter, and BatchNorm's running statistics, have other values: close enough that
// the model still behaves, far enough that a constant folded from the old ones is wrong.
State perturbed_weights(const Graph& graph, const State& state, uint64_t seed);

// `tensor` (float64) with each element moved by up to half of `epsilon`, relative.
at::Tensor nudged(const at::Tensor& tensor, double epsilon, uint64_t seed);

}  // namespace tilepilot::eval
