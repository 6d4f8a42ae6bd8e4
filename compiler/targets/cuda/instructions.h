// Which of the machine's larger instructions generated code has, read from its text: what a kernel's name for them in
// the prelude stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::targets::cuda {

// Of "wgmma", "mma", "TMA", "TMA multicast", "cp.async", "ldmatrix" and "stmatrix", those in the body of this function
// of a generated unit, in that order. None if there is no such function.
std::vector<std::string> instructions_of(std::string_view source, std::string_view function);

}  // namespace tilepilot::targets::cuda
