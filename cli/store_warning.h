// What is told when a database lies where it is not safe.
#pragma once

#include "cli/command.h"

namespace tilepilot::cli {

// A line on standard error if the store's folder is on a file system that other machines may share: for commands that
// write for long.
void warn_of_shared_store(const Session& session);

}  // namespace tilepilot::cli
