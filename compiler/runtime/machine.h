// What the compiler's `-march=native` depends on.
#pragma once

#include <string>

namespace tilepilot::runtime {

// Equal on machines that can run each other's kernels: the processor's model and its features.
std::string processor_identity();

}  // namespace tilepilot::runtime
