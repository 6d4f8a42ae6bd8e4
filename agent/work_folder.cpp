#include "agent/work_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

namespace tilepilot::agent {

Result<WorkFolder> WorkFolder::make(const std::filesystem::path& parent) {
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string name = (parent / "run-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    return make_error(DiagnosticKind::output_unwritable, {},
                      fmt::format("cannot make a folder in `{}`: {}", parent.string(), std::strerror(errno)),
                      "set `TILEPILOT_CACHE` to a folder that can be written");
  return WorkFolder(name);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tilepilot::agent
