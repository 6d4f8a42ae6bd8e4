// Compares one output of a candidate with what is expected of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <string>
#include <vector>

#include "eval/graph/output_parts.h"
#include "eval/graph/tolerance.h"
#include "eval/judge.h"

namespace tilepilot::eval {

// The expected value of one output: what eager gave in the run's type, and the float64 truth.
struct Expected {
  at::Tensor eager, truth;
  std::vector<int64_t> strides{};  // of eager's output, where `eager` is a copy of it
};

// The scaled errors of `value` against the truth, over the elements where truth and eager are finite: of each part of
// the output, or of the whole if there are none.
std::vector<ScaledError> scaled_errors(const at::Tensor& value, const Expected& expected,
                                       const std::vector<OutputPart>& parts = {});

// Of an integer output: how many elements differ, by how much at most, and over what range the second's spread.
struct IntegerDifferences {
  int64_t count = 0;
  double largest = 0, range = 0;
};
IntegerDifferences integer_differences(const at::Tensor& a, const at::Tensor& b);

struct Allowance {
  std::vector<OutputPart> parts = {};    // that have scales of their own; empty: the whole
  std::vector<ScaledError> scaled = {};  // floating outputs: by part
  int64_t differences = 0;               // integer outputs: so many elements may differ from eager and the truth
  double difference_size = INFINITY;     // and none by more than that
  bool is_narrowed = false;              // else a constant would pass
  bool float32_too = false;              // for a 16-bit output: the model runs in 16 bit only because the user asked

  Allowance times(double factor) const;  // of floating outputs
};

struct Comparison {
  Outcome outcome = Outcome::verified;
  std::string detail;
  OutputError error;
  std::string note = {};  // of a right output: what callers may stumble over
};

// A tensor that came from a candidate: its elements, and the strides it had there.
struct CandidateOutput {
  const at::Tensor& tensor;
  const std::vector<int64_t>& strides;
};
Comparison compare(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance);
// Whether compare() would find nothing wrong, without looking for where and how.
bool passes(const CandidateOutput& actual, const Expected& expected, const Allowance& allowance);

}  // namespace tilepilot::eval
