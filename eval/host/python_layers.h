// Layers of torch.nn that are written in Python (modules/torch_nn_transformer.py), for candidates and scripts alike.
#pragma once

#include "eval/host/host_state.h"

namespace tilepilot::eval {

// The layer of this name, or nothing; the module that holds it runs when the first of its names is asked for.
Result<std::optional<stage::Value>> find_python_layer(stage::Interpreter& interpreter, stage::ModuleObject& nn,
                                                      stage::Name name);

}  // namespace tilepilot::eval
