// How far values are from the truth, found in one pass over memory: outputs of millions of elements are compared many
// times for each verdict.
#pragma once

#include <ATen/core/Tensor.h>

namespace tilepilot::eval {

// Only elements where truth and eager are finite count, unless said otherwise. Scaled means: divided by
// |truth| + rms(truth) (docs/verification.md).
struct ErrorScan {
  double max_scaled = 0, rms_scaled = 0;  // NaN if a value is NaN
  double max_abs = 0, eager_max_abs = 0;
  double rms = 1;               // of the truth; 1 if that is zero everywhere, so that errors stay finite
  double largest_weight = 1;    // max of |truth| + rms(truth)
  bool not_finite = false;      // a value is not finite where it should be
  bool specials_wrong = false;  // where truth or eager is not finite, a value is not what eager gives
};

// All of one shape; `truth` is float64, the others of any floating type.
ErrorScan scan_errors(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth);

}  // namespace tilepilot::eval
