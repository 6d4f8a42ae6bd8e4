// A folder of one's own for one run, removed with everything in it at the end. Its name tells who made it, so that what
// a killed run left behind can be told from what another one works in.
#pragma once

#include <filesystem>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

class WorkFolder {
 public:
  // Makes `parent` if needed, and a folder with a fresh name inside. Folders of processes of this machine that are no
  // more are removed.
  static Result<WorkFolder> make(const std::filesystem::path& parent);
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::filesystem::path& path() const { return path_; }

  // Removes all folders of this process in `parent`: for a process that is about to die of a signal.
  static void remove_own(const std::filesystem::path& parent);

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tilepilot::agent
