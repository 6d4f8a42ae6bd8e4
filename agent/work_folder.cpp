#include "agent/work_folder.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler/runtime/owned_folder.h"

namespace tilepilot::agent {

namespace fs = std::filesystem;

Result<WorkFolder> WorkFolder::make(const fs::path& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  runtime::remove_owned_folders(parent, runtime::is_dead);
  std::string name = runtime::owned_folder_pattern(parent, "run");
  if (mkdtemp(name.data()) == nullptr)
    return make_error(DiagnosticKind::output_unwritable, {},
                      fmt::format("cannot make a folder in `{}`: {}", parent.string(), std::strerror(errno)),
                      "set `TILEPILOT_CACHE` to a folder that can be written");
  return WorkFolder(name);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void WorkFolder::remove_own(const fs::path& parent) {
  runtime::remove_owned_folders(parent, [](pid_t owner) { return owner == getpid(); });
}

}  // namespace tilepilot::agent
