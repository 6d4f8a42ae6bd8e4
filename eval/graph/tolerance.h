// The rule that decides whether a floating-point output is right (docs/verification.md derives it).
//
// Errors are scaled: |x - truth| / (|truth| + rms(truth)), with the truth from a float64 replay of the reference. What
// is allowed comes from three measures of what the model's element type can deliver: the error eager itself makes, how
// far the truth moves when inputs and weights move by one rounding, and the longest sums behind the output.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

// Spacing of numbers around 1 in an element type; 0 for integers.
double machine_epsilon(std::string_view dtype);

// The most terms that one element is summed from, over the operators on the paths to an output, as the shapes show it:
// in products (matrices, convolutions, attention), and in reductions.
struct SumLengths {
  int64_t products = 1;
  int64_t reductions = 1;
};
// By tensor of the graph's outputs, in order.
std::vector<SumLengths> longest_sums(const Graph& graph);
// How far a sum of a node's in float32 errs, in units of its own size: about the square root of its number of terms.
double units_of_sum(const Graph& graph, const GraphNode& node);

// Scaled errors of one output: the largest, the root of the mean square, and the largest by the local scale, which
// takes the rms of the element's row (or of its place along any axis, whichever is least) for the tensor's. `usual` is
// the median over rows of their rms, or over places along rows if that is less: what a few ill-conditioned rows or
// columns do not raise. `lost`: the share of the elements that are off by more than a quarter of themselves (less a few
// elements). `bias`: what all elements are off by, as a part of the truth. `fill`: the largest relative error of the
// elements so far beyond all others that scales leave them out (-1e9 in masked scores).
struct ScaledError {
  double max = 0;
  double rms = 0;
  double local = 0;
  double usual = 0;
  double lost = 0;
  double bias = 0;
  double fill = 0;
};

struct ToleranceBasis {
  double epsilon = 0;  // of the output's element type
  SumLengths sums = {};
  int64_t numel = 1;
  ScaledError eager = {};        // worst over the trials
  ScaledError sensitivity = {};  // of the truth to one rounding of inputs and weights
  bool is_own_type = true;       // false: programs may round inputs, weights and results to `epsilon`, eager does not
};

// What a candidate's scaled error may be, at most.
ScaledError allowed_error(const ToleranceBasis& basis);

// False for NaN, and where what is allowed is no finite number.
bool within(const ScaledError& error, const ScaledError& allowed);

// Integer outputs: how many elements may differ from eager, given how many differ between eager and the truth.
inline int64_t allowed_differences(int64_t eager_differences) { return 4 * eager_differences; }

}  // namespace tilepilot::eval
