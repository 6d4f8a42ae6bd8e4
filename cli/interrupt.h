// What happens when a signal ends the program: the command says its last words, the processes it started end with it,
// and its temporary folders are removed.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

namespace tilepilot::cli {

// What a command still does when a signal ends it, on another thread than its own.
class LastWords {
 public:
  void set(std::function<void()> words) {
    std::lock_guard lock(mutex_);
    words_ = std::move(words);
  }
  void say() {
    std::lock_guard lock(mutex_);
    if (words_) words_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> words_;
};

// Watches for SIGINT, SIGTERM and SIGHUP while it lives; at most one at a time. The program still dies of the signal,
// so that a shell sees what happened.
class InterruptWatch {
 public:
  // `work_folder`: the parent of the temporary folders. A second signal while the last words are said ends the program
  // at once.
  InterruptWatch(std::filesystem::path work_folder, LastWords& last_words);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;

 private:
  void watch();

  std::filesystem::path work_folder_;
  LastWords& last_words_;
  int read_end_ = -1;
  std::thread thread_;
};

}  // namespace tilepilot::cli
