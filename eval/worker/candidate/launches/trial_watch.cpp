#include "eval/worker/candidate/launches/trial_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace tilepilot::eval {

TrialWatch::~TrialWatch() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TrialWatch::begin(double seconds, std::function<void()> ran_out) {
  const auto length = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const std::lock_guard lock(mutex_);
  trial_ = Trial{Clock::now() + length, std::move(ran_out)};
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  changed_.notify_all();
}

void TrialWatch::end() {
  const std::lock_guard lock(mutex_);
  trial_.reset();
}

void TrialWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (!trial_) {
      changed_.wait(lock);
    } else if (Clock::now() < trial_->deadline) {
      changed_.wait_until(lock, trial_->deadline);
    } else {
      const auto ran_out = std::exchange(trial_, std::nullopt)->ran_out;
      lock.unlock();
      ran_out();
      lock.lock();
    }
  }
}

void begin_anew(const std::vector<std::string>& command) {
  std::fflush(nullptr);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored))
    if (const int descriptor = std::atoi(entry.path().filename().c_str()); descriptor > STDERR_FILENO)
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
}

}  // namespace tilepilot::eval
