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

// The ranges of a file: a slot for each reservation.
constexpr int kSlots = 256;
constexpr off_t kSlotLength = off_t{1} << 44;
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
  auto lock = range(F_WRLCK, start, kSlotLength);
  if (fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_len;
}

// What was free when nobody had reserved any: the last time, and at most. The content of the file.
struct Capacity {
  int64_t latest = 0, highest = 0;
};

// One kind of memory, by the file of its reservations; without one nobody else has any.
class MemoryLedger {
 public:
  explicit MemoryLedger(int file) : file_(file) {}

  bool take_gate() const { return lock_range(file_, kGate, 1); }
  void leave_gate() const { unlock_range(file_, kGate, 1); }
  // Once taken it is kept: nobody who waits is overtaken by others that wait.
  bool take_turn() const { return lock_range(file_, kTurn, 1); }
  void leave_turn() const { unlock_range(file_, kTurn, 1); }

  int64_t reserved_by_others() const {
    int64_t sum = 0;
    for (int slot = 0; file_ >= 0 && slot < kSlots; ++slot)
      sum += held_range(file_, slot * kSlotLength) * kReservedUnit;
    return sum;
  }

  // What is free while others use theirs tells nothing of the whole.
  Capacity capacity(int64_t free_now, bool is_whole) const {
    Capacity known = read();
    if (is_whole) known.latest = free_now;
    known.highest = std::max(known.highest, known.latest);
    const std::string text = fmt::format("{:<20} {:<20}\n", known.latest, known.highest);
    [[maybe_unused]] const auto written = pwrite(file_, text.data(), text.size(), 0);
    return known;
  }

  // Without a free slot it goes on uncounted: so many small ones are no reason to fail.
  void reserve(int64_t bytes) const {
    const auto units = static_cast<off_t>((bytes + kReservedUnit - 1) / kReservedUnit);
    for (int slot = 0; slot < kSlots; ++slot)
      if (lock_range(file_, slot * kSlotLength, std::max<off_t>(1, units))) return;
  }

 private:
  Capacity read() const {
    char text[64] = {};
    long long latest = 0, highest = 0;
    if (pread(file_, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%lld %lld", &latest, &highest) != 2) return {};
    return {latest, highest};
  }

  int file_;
};

bool has_range_locks(int file) {
  auto lock = range(F_WRLCK, kGate, 1);
  return fcntl(file, F_OFD_GETLK, &lock) == 0;
}

class MemoryQueue {
 public:
  MemoryQueue(int host, int gpu, const MemoryNeed& need, const ReservationOptions& options)
      : host_(host), gpu_(gpu), need_(need), options_(options), deadline_(monotonic_seconds() + options.patience_s) {}

  Status wait() {
    Status admitted = pass();
    host_.leave_turn();
    gpu_.leave_turn();
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

  // Under the gate: nobody else is admitted meanwhile, on any GPU.
  Result<bool> is_admitted() {
    if (!host_.take_gate()) return false;
    auto admitted = ask();
    host_.leave_gate();
    return admitted;
  }

  Result<bool> ask() {
    const MemoryAvailable now = TRY(options_.available());
    others_ = {host_.reserved_by_others(), gpu_.reserved_by_others()};
    const Capacity host = host_.capacity(now.host, others_.host == 0), gpu = gpu_.capacity(now.gpu, others_.gpu == 0);
    capacity_ = {host.latest, gpu.latest};
    TRY(check_memory(need_, {host.highest, gpu.highest}));
    Status alone = check_memory(need_, capacity_);
    if (!alone.ok() && is_settled()) TRY(std::move(alone));
    const bool small = need_.host <= capacity_.host / kSmallPart && need_.gpu <= capacity_.gpu / kSmallPart;
    if (!small && !has_turn_and_fits(alone.ok())) {
      must_wait_ = true;
      return false;
    }
    host_.reserve(need_.host);
    if (need_.gpu > 0) gpu_.reserve(gpu_share());
    return true;
  }

  // The GPU's turn is taken first by all, so that no two wait for each other's.
  bool has_turn_and_fits(bool fits_alone) const {
    const bool fits_gpu = fits_alone && gpu_share() <= capacity_.gpu - others_.gpu;
    if (need_.gpu > 0 && (!gpu_.take_turn() || !fits_gpu)) {
      host_.leave_turn();  // to those of other GPUs
      return false;
    }
    return host_.take_turn() && fits_alone && need_.host <= capacity_.host - others_.host;
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

  const MemoryLedger host_, gpu_;
  const MemoryNeed& need_;
  const ReservationOptions& options_;
  const double deadline_;
  bool must_wait_ = false;
  std::optional<double> idle_since_;
  MemoryAvailable others_, capacity_;
};

Descriptor open_ledger(const std::filesystem::path& folder, const std::string& name) {
  if (folder.empty()) return Descriptor();
  const auto file = folder / ("memory-" + name + ".lock");
  Descriptor opened(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  return has_range_locks(opened.number()) ? std::move(opened) : Descriptor();
}

}  // namespace

Result<MemoryReservation> MemoryReservation::take(const MemoryNeed& need, const ReservationOptions& options) {
  MemoryReservation reservation;
  reservation.host_ = open_ledger(options.folder, "host");
  if (need.gpu > 0) reservation.gpu_ = open_ledger(options.folder, options.gpu.empty() ? "gpu" : options.gpu);
  if (!reservation.is_shared() || (need.gpu > 0 && reservation.gpu_.number() < 0)) {
    TRY(check_memory(need, TRY(options.available())));
    return MemoryReservation();
  }
  TRY(MemoryQueue(reservation.host_.number(), reservation.gpu_.number(), need, options).wait());
  return reservation;
}

}  // namespace tilepilot::eval
