#include "eval/worker/judge/timing/timing_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <thread>

#include "eval/process/lock_folder.h"

namespace tilepilot::eval {

std::filesystem::path timing_lock_file(const std::string& bus_id) {
  const std::filesystem::path folder = lock_folder();
  if (folder.empty()) return {};
  return folder / (bus_id.empty() ? "timing-cpu.lock" : "timing-gpu-" + bus_id + ".lock");
}

namespace {

constexpr auto kPause = std::chrono::milliseconds(5);

// When the holder last gave a sign of life; what cannot be told is always the same.
timespec last_touched(int file) {
  struct stat info {};
  fstat(file, &info);
  return info.st_mtim;
}

Descriptor open_lock(const std::filesystem::path& file) {
  if (file.empty()) return Descriptor();
  return Descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
}

std::filesystem::path use_of(const std::filesystem::path& file) {
  return file.empty() ? file : std::filesystem::path(file.string() + ".use");
}

// Until `ready`, or `file` has not been touched for so long.
template <class Ready>
bool wait_for(int file, double patience_s, const Ready& ready) {
  double begin = monotonic_seconds();
  timespec seen = last_touched(file);
  while (!ready()) {
    const timespec now = last_touched(file);
    if (now.tv_sec != seen.tv_sec || now.tv_nsec != seen.tv_nsec) begin = monotonic_seconds();
    seen = now;
    if (monotonic_seconds() - begin > patience_s) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool take(int file, int kind) { return flock(file, kind | LOCK_NB) == 0; }

}  // namespace

TimingLock::TimingLock(const std::filesystem::path& file, const std::function<void()>& waits, double patience_s)
    : file_(open_lock(file)), use_(open_lock(use_of(file))) {
  constexpr int kLooks = 3;  // of others, in a row, for a moment each, are none that is timed
  if (file_.number() < 0) return;
  const double begin = monotonic_seconds();
  int failed = 0;
  holds_ = wait_for(file_.number(), patience_s, [&] {
    if (take(file_.number(), LOCK_EX)) return true;
    if (++failed == kLooks) waits();
    return false;
  });
  if (holds_) {
    touch();
    // Who has a share gives it back after a step; one that is stopped in the middle is not waited for.
    if (use_.number() >= 0) wait_for(use_.number(), patience_s, [&] { return take(use_.number(), LOCK_EX); });
    touch();
  }
  waited_s_ = monotonic_seconds() - begin;
}

void TimingLock::touch() const {
  if (holds_) futimens(file_.number(), nullptr);
}

DeviceShare::DeviceShare(const std::filesystem::path& file, Limits limits)
    : file_(open_lock(file)), use_(open_lock(use_of(file))), limits_(limits) {}

// Looking is a share of the other file for a moment, for which nobody who wants to hold that alone need wait longer.
bool DeviceShare::is_wanted() const {
  if (!take(file_.number(), LOCK_SH)) return true;
  flock(file_.number(), LOCK_UN);
  return false;
}

double DeviceShare::renew() {
  if (is_suspended_ || file_.number() < 0 || use_.number() < 0) return 0;
  const double begin = monotonic_seconds();
  if (since_ && begin - *since_ < limits_.turn_s) return 0;
  if (is_wanted()) {
    release();
    wait_for(file_.number(), limits_.patience_s, [this] { return !is_wanted(); });
  }
  futimens(use_.number(), nullptr);  // a sign of life, for who waits until all shares are back
  wait_for(file_.number(), limits_.patience_s, [this] { return take(use_.number(), LOCK_SH); });
  since_ = monotonic_seconds();
  return *since_ - begin;
}

void DeviceShare::release() {
  if (use_.number() >= 0) flock(use_.number(), LOCK_UN);
  since_.reset();
}

void DeviceShare::suspend() {
  release();
  is_suspended_ = true;
}

}  // namespace tilepilot::eval
