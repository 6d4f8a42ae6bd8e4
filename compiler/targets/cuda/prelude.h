// The text that stands before every generated CUDA unit: element types, conversions, scalar functions, memory, threads,
// atomics, tensor cores, and what sm_90a adds. NVRTC alone compiles it, without any header.
#pragma once

#include <string>

namespace tilepilot::targets::cuda {

const std::string& prelude();

}  // namespace tilepilot::targets::cuda
