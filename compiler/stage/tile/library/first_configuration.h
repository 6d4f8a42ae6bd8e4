// `tilelang.autotune` where nothing can be tuned, as in a candidate: every call takes the first configuration.
#pragma once

#include "compiler/stage/python/objects/objects.h"
#include "compiler/stage/tile/kernel/context.h"

namespace tilepilot::stage {

Value make_first_configuration_tuner(const ContextRef& context);

}  // namespace tilepilot::stage
