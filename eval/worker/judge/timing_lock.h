// Lets one run at a time be timed on a processor or a GPU, and on a GPU lets nobody else work meanwhile: file locks in
// a folder of the user's. The system releases them when the process that holds them ends, however that ends.
//
// Two files: whoever is timed, or waits for it, holds FILE alone; then FILE.use, of which everybody else who works
// there has a share. Shares are given back between steps, and taken again only while nobody holds FILE.
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
  // others. `waits` is called if another run is timed. The caller has no share.
  TimingLock(const std::filesystem::path& file, const std::function<void()>& waits, double patience_s = 120);
  bool holds() const { return holds_; }
  double waited_s() const { return waited_s_; }
  // A sign of life, for those that wait.
  void touch() const;

 private:
  Descriptor file_, use_;
  double waited_s_ = 0;
  bool holds_ = false;
};

// A share of a device on which nobody is timed meanwhile. None is taken before it is asked for.
class DeviceShare {
 public:
  // Empty: of a device that needs none.
  explicit DeviceShare(const std::filesystem::path& file, double patience_s = 120);
  // Between two steps of work: lets those go first that wait to be timed. Waits as TimingLock does, and gives how long,
  // in seconds. Nothing while it is suspended.
  double renew();
  void release();
  // While the owner itself is timed.
  void suspend();
  void resume() { is_suspended_ = false; }

 private:
  bool is_wanted() const;

  Descriptor file_, use_;
  double patience_s_;
  bool is_suspended_ = false;
};

}  // namespace tilepilot::eval
