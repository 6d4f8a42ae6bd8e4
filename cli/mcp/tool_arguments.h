// From the arguments of a call to the command that answers it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/work_folder.h"
#include "cli/mcp/setup.h"
#include "cli/mcp/tools.h"
#include "compiler/diagnostics/result.h"

namespace tilepilot::cli::mcp {

struct PlannedCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;       // "NAME=value", beside this process's
  std::unique_ptr<agent::WorkFolder> folder;  // holds what came as text; may be null
  std::filesystem::path program;  // in that folder, where the command writes what goes back as text; may be empty
  double time_limit_s = 0;        // 0: none
};

// Errors, all at once: arguments that the tool does not have, that are of another type, or that are missing.
Result<PlannedCommand> plan_command(const Setup& setup, const Tool& tool, const nlohmann::json& arguments);

}  // namespace tilepilot::cli::mcp
