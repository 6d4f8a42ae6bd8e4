// What programs ask of the compiler beside their text: `pass_configs` and `compile_flags`.
#pragma once

#include "compiler/stage/tile/kernel/arguments.h"

namespace tilepilot::stage {

// Whether argument `i`, a dict of configurations or a flag or list of flags, asks for approximate arithmetic (see
// ir::Kernel::fast_math). Announces what else it asks for, which no target here heeds.
Result<bool> fast_math_of_configs(const TileArguments& arguments, size_t i);
Result<bool> fast_math_of_flags(const TileArguments& arguments, size_t i);

}  // namespace tilepilot::stage
