// What a program that is killed cannot do itself: removing its temporary folders, and those of processes it had
// started.
#pragma once

#include <filesystem>
#include <vector>

namespace tilepilot::cli {

// A small process beside this one that waits for its end, however that comes, then removes what dead processes of this
// machine have left in the folders, and ends. It holds no output of this process, and no signal of its terminal
// reaches it.
class FolderGuard {
 public:
  explicit FolderGuard(const std::vector<std::filesystem::path>& folders);
  ~FolderGuard();
  FolderGuard(const FolderGuard&) = delete;

 private:
  int lifeline_ = -1;  // the guard reads its end
};

}  // namespace tilepilot::cli
