// A time limit on what tuning tries. A kernel that hangs cannot be ended, neither on a GPU nor here, but its process
// can: it becomes a new one by `exec`, whose context on the GPU is fresh, and which has read what was measured before.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tilepilot::eval {

class TrialWatch {
 public:
  TrialWatch() = default;
  ~TrialWatch();
  TrialWatch(const TrialWatch&) = delete;

  // `ran_out` is called by another thread if the trial has not ended after so many seconds. One trial at a time.
  void begin(double seconds, std::function<void()> ran_out);
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  struct Trial {
    Clock::time_point deadline;
    std::function<void()> ran_out;
  };
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<Trial> trial_;
  bool closing_ = false;
  std::thread thread_;

  void watch();
};

// Replaces this process and all its threads by a new one that runs `command`; its standard streams stay, everything
// else that is open is closed. Returns only if that fails.
void begin_anew(const std::vector<std::string>& command);

}  // namespace tilepilot::eval
