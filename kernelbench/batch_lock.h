// Keeps two calls from running one batch at once on this machine.
#pragma once

#include <filesystem>

#include "eval/process/wire.h"

namespace tilepilot::kernelbench {

// Held while the value lives; ends with the process, however that ends, and leaves no file. Errors: `bad_usage`,
// another process has it. On a machine without such names everybody gets it.
Result<eval::Descriptor> lock_batch(const std::filesystem::path& store, int64_t batch);

}  // namespace tilepilot::kernelbench
