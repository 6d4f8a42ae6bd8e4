// The manual page of `tilepilot`, as man reads it.
#pragma once

#include <string>

#include "cli/command_table.h"

namespace tilepilot::cli {

// `version` as "0.1.0", `date` as "2026-01-31".
std::string manual_page(const CommandRow& program, const std::string& version, const std::string& date);

}  // namespace tilepilot::cli
