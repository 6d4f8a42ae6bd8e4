// The whole file: imports, kernels, the kept part of the user's model, and the new forward.
#pragma once

#include <string>

#include "agent/builtin/plan.h"

namespace tilepilot::agent::builtin {

// Whether the model computes something else in training than in evaluation, as far as its graph and its text tell.
bool depends_on_mode(const eval::Reference& reference);

Result<std::string> write_program(const eval::Reference& reference, const Plan& plan);

}  // namespace tilepilot::agent::builtin
