// How long a GPU was at work for each kernel, by CUPTI's activity records, which LibTorch's Kineto collects: the kernel
// alone, without the microsecond that two events around it add.
#pragma once

#include <functional>
#include <vector>

#include "eval/profile/profile_record.h"

namespace tilepilot::eval {

// Of what `work` makes the GPU do, in the order in which it began; empty on a processor, and where CUPTI is not allowed
// to look. The first use takes a fraction of a second. Errors: those of `work`, and what LibTorch throws.
Result<std::vector<DeviceTime>> device_times(const std::function<Status()>& work);

}  // namespace tilepilot::eval
