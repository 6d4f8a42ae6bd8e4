// Stress on the ends of an axis: what a loop over all but the last slice, or the first, leaves out.
#pragma once

#include <vector>

#include "eval/worker/truth/stress/stress.h"

namespace tilepilot::eval {

at::Tensor with_other_end(const at::Tensor& tensor, EndForm form, Draws& draws);

// The last slice along the last two axes, with all others on either side; if `further` the first slices, other axes,
// and one element alone.
std::vector<StressPlan> end_plans(const std::vector<at::Tensor>& inputs, bool narrow, bool further);

}  // namespace tilepilot::eval
