// Methods of tensors that need more than typed arguments: those that read Python values, or that a candidate may not
// use.
#pragma once

#include "eval/host/tensors/tensor_object.h"

namespace tilepilot::eval {

using TensorMethod = Result<stage::Value> (*)(HostState&, stage::Interpreter&, TensorObject&, stage::CallArgs&);

// The method of this name, or null.
const TensorMethod* find_tensor_method(stage::Name name);

}  // namespace tilepilot::eval
