// A folder of one's own for one run, removed with everything in it at the end.
#pragma once

#include <filesystem>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent {

class WorkFolder {
 public:
  // Makes `parent` if needed, and a folder with a fresh name inside.
  static Result<WorkFolder> make(const std::filesystem::path& parent);
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tilepilot::agent
