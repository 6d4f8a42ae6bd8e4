#include "eval/process/memory_reservation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace tilepilot::eval {
namespace {

// The ranges of the file. A reservation has a slot, with a half for each kind of memory.
constexpr int kSlots = 256;
constexpr off_t kSlotLength = off_t{1} << 44, kHalf = off_t{1} << 43;
constexpr off_t kGate = off_t{1} << 60;  // while reservations are counted and one is added
constexpr off_t kTurn = kGate + 1;       // of the one that is admitted next
constexpr int64_t kReservedUnit = int64_t{1} << 20;
constexpr int64_t kSmallPart = 16;  // of what there is: smaller ones do not wait
// LibTorch keeps some of what it frees, in blocks that fit nothing else.
constexpr double kKeptByAllocator = 1.1;
constexpr auto kPause = std::chrono::milliseconds(20);

struct flock range(short type, off_t start, off_t length) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  return lock;
}

bool lock_range(int file, off_t start, off_t length) {
  auto lock = range(F_WRLCK, start, length);
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

void unlock_range(int file, off_t start, off_t length) {
  auto lock = range(F_UNLCK, start, length);
  fcntl(file, F_OFD_SETLK, &lock);
}

// How long a range that another holds there is; 0: none.
off_t held_range(int file, off_t start) {
  auto lock = range(F_WRLCK, start, kHalf);
  if (fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_len;
}

bool has_range_locks(int file) {
  auto lock = range(F_WRLCK, kGate, 1);
  return fcntl(file, F_OFD_GETLK, &lock) == 0;
}

off_t units(int64_t bytes) { return static_cast<off_t>((bytes + kReservedUnit - 1) / kReservedUnit); }

// What others have reserved.
MemoryAvailable reserved(int file) {
  MemoryAvailable sum;
  for (int slot = 0; slot < kSlots; ++slot) {
    const off_t begin = slot * kSlotLength;
    sum.host += held_range(file, begin) * kReservedUnit;
    sum.gpu += held_range(file, begin + kHalf) * kReservedUnit;
  }
  return sum;
}

// What was free when nobody had reserved any: the last time, and at most. The content of the file.
struct Capacity {
  MemoryAvailable latest, highest;
};

Capacity read_capacity(int file) {
  char text[128] = {};
  long long numbers[4] = {};
  if (pread(file, text, sizeof(text) - 1, 0) <= 0 ||
      sscanf(text, "%lld %lld %lld %lld", numbers, numbers + 1, numbers + 2, numbers + 3) < 2)
    return {};
  return {{numbers[0], numbers[1]}, {numbers[2], numbers[3]}};
}

void write_capacity(int file, const Capacity& known) {
  const std::string text = fmt::format("{:<20} {:<20} {:<20} {:<20}\n", known.latest.host, known.latest.gpu,
                                       known.highest.host, known.highest.gpu);
  [[maybe_unused]] const auto written = pwrite(file, text.data(), text.size(), 0);
}

class MemoryQueue {
 public:
  MemoryQueue(int file, const MemoryNeed& need, const ReservationOptions& options)
      : file_(file), need_(need), options_(options), deadline_(monotonic_seconds() + options.patience_s) {}

  Status wait() {
    Status admitted = pass();
    unlock_range(file_, kTurn, 1);
    return admitted;
  }

 private:
  Status pass() {
    bool told = false;
    while (true) {
      if (TRY(is_admitted())) return {};
      if (monotonic_seconds() > deadline_) return too_long();
      if (must_wait_ && !std::exchange(told, true)) options_.waits(what_for());
      std::this_thread::sleep_for(kPause);
    }
  }

  // Under the gate: nobody else is admitted meanwhile.
  Result<bool> is_admitted() {
    if (!lock_range(file_, kGate, 1)) return false;
    auto admitted = ask();
    unlock_range(file_, kGate, 1);
    return admitted;
  }

  Result<bool> ask() {
    others_ = reserved(file_);
    const MemoryAvailable now = TRY(options_.available());
    Capacity known = read_capacity(file_);
    // What is free while others use theirs tells nothing of the whole.
    if (others_.host == 0) known.latest.host = now.host;
    if (others_.gpu == 0) known.latest.gpu = now.gpu;
    known.highest.host = std::max(known.highest.host, known.latest.host);
    known.highest.gpu = std::max(known.highest.gpu, known.latest.gpu);
    write_capacity(file_, known);
    capacity_ = known.latest;
    TRY(check_memory(need_, known.highest));
    Status alone = check_memory(need_, capacity_);
    if (!alone.ok() && is_settled()) TRY(std::move(alone));
    const bool small = need_.host <= capacity_.host / kSmallPart && need_.gpu <= capacity_.gpu / kSmallPart;
    const bool fits = alone.ok() && need_.host <= capacity_.host - others_.host &&
                      (need_.gpu == 0 || gpu_share() <= capacity_.gpu - others_.gpu);
    // The turn, once taken, is kept: nobody who waits is overtaken by others that wait.
    if (!small && (!lock_range(file_, kTurn, 1) || !fits)) {
      must_wait_ = true;
      return false;
    }
    reserve();
    return true;
  }

  // Whether nobody has had any for so long that what they gave back is free.
  bool is_settled() {
    const double now = monotonic_seconds();
    if (others_.host != 0 || others_.gpu != 0) {
      idle_since_.reset();
      return false;
    }
    if (!idle_since_) idle_since_ = now;
    return now - *idle_since_ >= options_.settling_s;
  }

  // Without a free slot it goes on uncounted: so many small ones are no reason to fail.
  void reserve() {
    for (int slot = 0; slot < kSlots; ++slot) {
      const off_t begin = slot * kSlotLength;
      if (!lock_range(file_, begin, std::max<off_t>(1, units(need_.host)))) continue;
      if (need_.gpu > 0) lock_range(file_, begin + kHalf, units(gpu_share()));
      return;
    }
  }

  int64_t gpu_share() const {
    return std::min(capacity_.gpu, static_cast<int64_t>(kKeptByAllocator * static_cast<double>(need_.gpu)));
  }
  static double in_gigabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

  std::string what_for() const {
    const bool host = need_.gpu == 0 || need_.host > capacity_.host - others_.host;
    return fmt::format("waiting for memory{}: this needs {:.1f} GB, other runs have reserved {:.1f} of {:.1f} GB",
                       host ? "" : " of the GPU", in_gigabytes(host ? need_.host : gpu_share()),
                       in_gigabytes(host ? others_.host : others_.gpu),
                       in_gigabytes(host ? capacity_.host : capacity_.gpu));
  }

  Status too_long() const {
    return make_error(DiagnosticKind::out_of_memory, {},
                      fmt::format("gave up after {:.0f} s of {}", options_.patience_s, what_for()),
                      "end the other runs, or try again later");
  }

  const int file_;
  const MemoryNeed& need_;
  const ReservationOptions& options_;
  const double deadline_;
  bool must_wait_ = false;
  std::optional<double> idle_since_;
  MemoryAvailable others_, capacity_;
};

}  // namespace

Result<MemoryReservation> MemoryReservation::take(const MemoryNeed& need, const ReservationOptions& options) {
  Descriptor file;
  if (!options.folder.empty())
    file = Descriptor(
        open((options.folder / "memory.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (file.number() < 0 || !has_range_locks(file.number())) {
    TRY(check_memory(need, TRY(options.available())));
    return MemoryReservation();
  }
  TRY(MemoryQueue(file.number(), need, options).wait());
  return MemoryReservation(std::move(file));
}

}  // namespace tilepilot::eval
