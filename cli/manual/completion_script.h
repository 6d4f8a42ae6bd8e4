// Scripts by which shells complete command lines of `tilepilot`: commands, options, what an option may be, and names of
// files where a file is expected.
#pragma once

#include <string>

#include "cli/command_table.h"

namespace tilepilot::cli {

std::string bash_completion(const CommandRow& program);
std::string zsh_completion(const CommandRow& program);
std::string fish_completion(const CommandRow& program);

}  // namespace tilepilot::cli
