// The machine that a program is for, in numbers, for a language model.
#pragma once

#include <string>

#include "eval/graph/roofline.h"

namespace tilepilot::agent {

// `threads`: of a processor, that model and candidate have; 0: all.
std::string describe_hardware(const std::string& target, const eval::MachineRates& rates, int threads);

}  // namespace tilepilot::agent
