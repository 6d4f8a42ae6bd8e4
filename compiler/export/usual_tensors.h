// When a call's tensors are such as the code for usual tensors takes for granted (targets/gpu/facts/tensor_facts.h), as
// a condition in C++; and the program for all others.
#pragma once

#include <string>

#include "compiler/diagnostics/result.h"
#include "compiler/export/interface.h"

namespace tilepilot::exporting {

// Over the parameters of the function.
Result<std::string> usual_condition(const Kernel& kernel);
// Relies on nothing but that elements are where elements may be.
ir::Program for_any_tensors(const ir::Program& program);

}  // namespace tilepilot::exporting
