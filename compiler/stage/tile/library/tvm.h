// The few names of TVM that programs use: dtypes and some expressions. Whatever else they import from it can be passed
// around, and is an error where it is used.
#pragma once

#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

std::shared_ptr<ModuleObject> make_tvm(const ContextRef& context);

}  // namespace tilepilot::stage
