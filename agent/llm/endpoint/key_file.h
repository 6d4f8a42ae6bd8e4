// The file that holds an endpoint's key.
#pragma once

#include <filesystem>
#include <string>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

// The key in a file of one line. Errors, of kind `bad_usage`: it cannot be read, others than its owner may read it, it
// holds no key or more than one line.
Result<std::string> key_in(const std::filesystem::path& file);

}  // namespace tilepilot::agent
