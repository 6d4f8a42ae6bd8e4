// What this room has in Python (eval/host/modules), for candidates and scripts alike: layers of torch.nn that are made
// of others, and the packages that models import beside torch.
#pragma once

#include "eval/host/host_state.h"

namespace tilepilot::eval {

// The layer of this name, or nothing; the module that holds it runs when the first of its names is asked for.
Result<std::optional<stage::Value>> find_python_layer(stage::Interpreter& interpreter, stage::ModuleObject& nn,
                                                      stage::Name name);

// Adds `einops` and `numpy`, each of which runs when one of its names is asked for. Scripts import them otherwise.
void add_python_packages(stage::Interpreter& interpreter);

}  // namespace tilepilot::eval
