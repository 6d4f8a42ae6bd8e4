// What happens when a signal ends the program: the processes it started end with it, and its temporary folders are
// removed.
#pragma once

#include <filesystem>
#include <thread>

namespace tilepilot::cli {

// Watches for SIGINT, SIGTERM and SIGHUP while it lives; at most one at a time. The program still dies of the signal,
// so that a shell sees what happened.
class InterruptWatch {
 public:
  // `work_folder`: the parent of the temporary folders.
  explicit InterruptWatch(std::filesystem::path work_folder);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;

 private:
  void watch();

  std::filesystem::path work_folder_;
  int read_end_ = -1;
  std::thread thread_;
};

}  // namespace tilepilot::cli
