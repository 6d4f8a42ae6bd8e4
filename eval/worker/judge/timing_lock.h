// Lets one run at a time be timed on a processor or a GPU: a file lock in a folder of the user's. The system releases
// it when the process that holds it ends, however that ends.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "eval/wire.h"

namespace tilepilot::eval {

// The file for a target; empty where there is no folder that is the user's alone.
std::filesystem::path timing_lock_file(const std::string& target);

class TimingLock {
 public:
  // Waits for it, but not for ever: a holder that is stopped, and gives no sign of life for `patience_s`, must not stop
  // others. `waits` is called if it must wait.
  TimingLock(const std::filesystem::path& file, const std::function<void()>& waits, double patience_s = 120);
  bool holds() const { return holds_; }
  // A sign of life, for those that wait.
  void touch() const;

 private:
  Descriptor file_;
  bool holds_ = false;
};

}  // namespace tilepilot::eval
