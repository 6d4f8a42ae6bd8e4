// Changed weights: other values a model could have, and values moved by less than a rounding. All are on the device
// that the given ones are on.
#pragma once

#include "eval/torch/replay.h"

namespace tilepilot::eval {

// A copy in which every floating parameter, and BatchNorm's running statistics, have other values: close enough that
// the model still behaves, far enough that a constant folded from the old ones is wrong.
State perturbed_weights(const Graph& graph, const State& state, uint64_t seed);

// A copy in which every floating buffer that is no running statistic has other values. Zeros among others stay, and so
// do infinities: they are masks. Buffers of 8 bits (quantised weights) hold the same values in another order.
State moved_buffers(const Graph& graph, const State& state, uint64_t seed);
// Whether there are any.
bool has_movable_buffers(const Graph& graph, const State& state);

// A copy with values of the same kind but none of the old ones: floating parameters are permuted and rescaled element
// by element, constant ones drawn anew, those far from 1 of its order; running statistics change, and variances stay
// positive.
State redrawn_weights(const Graph& graph, const State& state, uint64_t seed);

// A copy of such weights in which each element of a parameter has a random sign, and a quarter to four times its size.
State stretched_weights(const Graph& graph, const State& state, uint64_t seed);

// `tensor` (float64) with each element moved by up to half of `epsilon`, relative.
at::Tensor nudged(const at::Tensor& tensor, double epsilon, uint64_t seed);

// Moves what a node computed as programs that round after each step do (Monte Carlo arithmetic: Parker, "Monte Carlo
// Arithmetic: exploiting randomness in floating-point arithmetic", 1997): by up to half of `epsilon`, relative, and for
// sums by `units` of `epsilon` and of the tensor's rms, where other nodes use it. To functions that programs compute
// from exponentials, sums and differences of numbers around 1 (tanh, elu, softplus, ...) up to two roundings of 1 are
// added: close to zero a library's function may be better than any of these.
struct NodeNudge {
  double epsilon = 0;
  uint64_t seed = 0;
  bool is_used = true;
  double units = 0;
};
void nudge_results(const GraphNode& node, std::vector<c10::IValue>& results, NodeNudge nudge);

}  // namespace tilepilot::eval
