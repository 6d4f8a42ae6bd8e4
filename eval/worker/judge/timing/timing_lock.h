// Lets one run at a time be timed on a processor or a GPU, and on a GPU lets nobody else work meanwhile: file locks in
// a folder of the user's. The system releases them when the process that holds them ends, however that ends.
//
// Two files: whoever is timed, or waits for it, holds FILE alone; then FILE.use, of which everybody else who works
// there has a share. Shares are given back between steps, and taken again only while nobody holds FILE.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "eval/process/wire.h"

namespace tilepilot::eval {

// The file for the GPU of this bus id, or for the processor, where that is empty; empty where there is no folder that
// is the user's alone.
std::filesystem::path timing_lock_file(const std::string& bus_id);

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
  struct Limits {
    double turn_s = 0.5;  // for so long nobody need go first: where many wait to be timed, work goes on, too
    double patience_s = 120;
  };
  // Empty: of a device that needs none.
  explicit DeviceShare(const std::filesystem::path& file, Limits limits);
  explicit DeviceShare(const std::filesystem::path& file) : DeviceShare(file, Limits()) {}
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
  Limits limits_;
  std::optional<double> since_;  // when its turn began; none: there is no share
  bool is_suspended_ = false;
};

// While it lives, its owner has no share of the GPU: it is to be timed there, alone.
class NoShare {
 public:
  explicit NoShare(DeviceShare* share) : share_(share) {
    if (share_) share_->suspend();
  }
  ~NoShare() {
    if (share_) share_->resume();
  }
  NoShare(const NoShare&) = delete;

 private:
  DeviceShare* share_;
};

}  // namespace tilepilot::eval
