// How long eager takes for each node of a model's graph: calls of its own, with weights as exported and inputs as
// `get_inputs` draws them.
#pragma once

#include <c10/core/Device.h>

#include "eval/graph/reference.h"
#include "eval/profile/eager_times.h"

namespace tilepilot::eval {

// The first call does not count, and ends the measuring if it takes more than kLongestFirstCall seconds. Others follow
// for about half a second, thirty at most. Errors: the model cannot be replayed, or is too slow.
inline constexpr double kLongestFirstCall = 3;
Result<EagerTimes> time_nodes(const Reference& reference, c10::Device device);

}  // namespace tilepilot::eval
