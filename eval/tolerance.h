// The rule that decides whether a floating-point output is right (docs/verification.md derives it).
//
// Errors are scaled: |x - truth| / (|truth| + rms(truth)), with the truth from a float64 replay of the reference. What
// is allowed comes from three measures of what the model's element type can deliver: the error eager itself makes, how
// far the truth moves when inputs and weights move by one rounding, and the length of the longest sum.
#pragma once

#include <cstdint>

#include "eval/reference.h"

namespace tilepilot::eval {

// Spacing of numbers around 1 in an element type; 0 for integers.
double machine_epsilon(std::string_view dtype);

// Most terms any one element of the graph is summed from, as the shapes show it.
int64_t longest_sum(const Graph& graph);

// Scaled errors of one output: the largest, and the root of the mean square.
struct ScaledError {
  double max = 0;
  double rms = 0;
};

struct ToleranceBasis {
  double epsilon = 0;  // of the output's element type
  int64_t longest_sum = 1;
  ScaledError eager;        // worst over the trials
  ScaledError sensitivity;  // of the truth to one rounding of inputs and weights
};

// What a candidate's scaled error may be, at most.
ScaledError allowed_error(const ToleranceBasis& basis);

inline bool within(const ScaledError& error, const ScaledError& allowed) {
  return error.max <= allowed.max && error.rms <= allowed.rms;  // false for NaN
}

// Integer outputs: how many elements may differ from eager, given how many differ between eager and the truth.
inline int64_t allowed_differences(int64_t eager_differences) { return 4 * eager_differences; }

}  // namespace tilepilot::eval
