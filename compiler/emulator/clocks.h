// Who knows what of whom: vector clocks of a block's threads. A barrier of the whole block starts a new epoch, before
// which everything is ordered, so clocks are only kept of what happens between two of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tilepilot::emulator {

// When and where a thread did something.
struct Moment {
  uint32_t epoch = 0, clock = 0;
  uint32_t site = 0;
  uint16_t thread = 0;
};

// What whoever released something knew, for those who acquire it.
struct Knowledge {
  uint32_t epoch = 0;  // of which it speaks
  std::vector<uint32_t> clocks;
};

// Threads, and after them the copy engine, which is no thread but does things, too.
class Clocks {
 public:
  explicit Clocks(int64_t threads)
      : threads_(static_cast<size_t>(threads) + 1),
        clocks_(threads_),
        own_epochs_(threads_),
        row_epochs_(threads_),
        fences_(threads_),
        acquired_(threads_) {}

  // All that was done so far is ordered before what follows.
  void start_epoch() { ++epoch_; }
  uint32_t epoch() const { return epoch_; }

  Moment now(int thread, uint32_t site) const { return {epoch_, clock(thread), site, static_cast<uint16_t>(thread)}; }
  // True if `thread`, at what it does now, knows that the moment is over.
  bool is_ordered(const Moment& moment, int thread) const {
    return moment.epoch < epoch_ || moment.thread == thread || knows(thread, moment);
  }
  // The threads wait for each other.
  void join(std::span<const uint16_t> members);
  void release(int thread, Knowledge& to);
  void acquire(int thread, const Knowledge& from);

  void merge(Knowledge& to, const Knowledge& from) const;

  uint16_t engine() const { return static_cast<uint16_t>(threads_ - 1); }
  // The engine has done something that only those know who acquire `to`.
  Moment engine_moment(uint32_t site, Knowledge& to);
  // What the thread wrote, and what it has acquired, may be used by the engine and by asynchronous products.
  void fence(int thread);
  // A write that is ordered before what `thread` does now: whether a fence stands between.
  bool is_fenced(const Moment& write, int thread) const;

 private:
  uint32_t clock(int thread) const {
    return own_epochs_[static_cast<size_t>(thread)] == epoch_ ? clocks_[static_cast<size_t>(thread)] : 1;
  }
  uint32_t* row(int thread);
  void tick(int thread);
  void start(Knowledge& knowledge) const;
  bool knows(int thread, const Moment& moment) const {
    const auto row = static_cast<size_t>(thread);
    return row_epochs_[row] == epoch_ && rows_[row * threads_ + moment.thread] >= moment.clock;
  }

  size_t threads_;
  uint32_t epoch_ = 1;
  std::vector<uint32_t> clocks_, own_epochs_;  // a thread's own clock, if its epoch is this one; else it is 1
  std::vector<uint32_t> row_epochs_;           // likewise what it knows of others; else that is nothing
  std::vector<uint32_t> rows_;                 // threads x threads, made when first needed
  std::vector<uint32_t> joined_;
  struct Fence {
    uint32_t epoch = 0, clock = 0;
  };
  std::vector<Fence> fences_;               // the last of each thread
  std::vector<Fence> acquired_;             // when it last learnt something
  std::array<uint32_t, 2> fence_epochs_{};  // the last two that had any
};

}  // namespace tilepilot::emulator
