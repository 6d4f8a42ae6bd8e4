#include "eval/worker/judge/timing_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <thread>

#include "eval/lock_folder.h"

namespace tilepilot::eval {

std::filesystem::path timing_lock_file(const std::string& target) {
  const std::filesystem::path folder = lock_folder();
  if (folder.empty()) return {};
  return folder / (target.starts_with("cuda") ? "timing-gpu.lock" : "timing-cpu.lock");
}

namespace {

// When the holder last gave a sign of life; what cannot be told is always the same.
timespec last_touched(int file) {
  struct stat info {};
  fstat(file, &info);
  return info.st_mtim;
}

}  // namespace

TimingLock::TimingLock(const std::filesystem::path& file, const std::function<void()>& waits, double patience_s) {
  if (file.empty()) return;
  file_ = Descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (file_.number() < 0) return;
  double begin = monotonic_seconds();
  timespec seen = last_touched(file_.number());
  bool told = false;
  while (flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
    const timespec now = last_touched(file_.number());
    if (now.tv_sec != seen.tv_sec || now.tv_nsec != seen.tv_nsec) begin = monotonic_seconds();
    seen = now;
    if (monotonic_seconds() - begin > patience_s) return;
    if (!std::exchange(told, true)) waits();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  holds_ = true;
  touch();
}

void TimingLock::touch() const {
  if (holds_) futimens(file_.number(), nullptr);
}

}  // namespace tilepilot::eval
