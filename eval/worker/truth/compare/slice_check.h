// Whether a truth that was made slice by slice is to be believed. A wrong rule of eval/graph/axis_rules.h would give
// wrong values, so it is held against what does not depend on the slices.
#pragma once

#include "eval/torch/sliced_replay.h"
#include "eval/worker/truth/compare/comparison.h"

namespace tilepilot::eval {

// `outputs`: eager's, and the truth that `replay` made of the same call. Errors: what differs.
// - Eager, where it errs by more than rounding could: 1 % of the output's scale, or 32 units of a 16-bit type.
// - A slice that begins in the middle of another: its values must be the same to 1e-9.
Status check_slices(const SlicedReplay& replay, const SlicedReplay::Call& call, const std::vector<Expected>& outputs);

}  // namespace tilepilot::eval
