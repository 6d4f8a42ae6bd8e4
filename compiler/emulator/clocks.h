// Who knows what of whom: vector clocks of a block's threads. A barrier of the whole block starts a new epoch, before
// which everything is ordered, so clocks are only kept of what happens between two of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
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

// The same, to keep: all of earlier epochs, and of this one what each thread did up to a clock.
struct Frontier {
  uint32_t epoch = 0;                                   // 0: nothing
  std::vector<std::pair<uint16_t, uint32_t>> clocks{};  // by thread; of others nothing
  // @pre the moment is of the same clocks
  bool covers(const Moment& moment) const;
  // @post covers what either did
  void join(const Frontier& other);
};

// Numbers of epochs. Each belongs to one of those that have clocks, which are blocks or clusters.
class Epochs {
 public:
  // A new one, later than all others.
  uint32_t start(uint32_t owner);
  uint32_t last() const { return last_; }
  // @pre the epoch was started
  uint32_t owner(uint32_t epoch) const;

 private:
  struct Run {
    uint32_t first, owner;
  };
  uint32_t last_ = 0;
  std::vector<Run> runs_;
};

// Threads, and after them the copy engine, which is no thread but does things, too.
class Clocks {
 public:
  Clocks(int64_t threads, Epochs& epochs)
      : threads_(static_cast<size_t>(threads) + 1),
        epochs_(epochs),
        epoch_(epochs.start(0)),
        clocks_(threads_),
        own_epochs_(threads_),
        row_epochs_(threads_),
        fences_(threads_),
        acquired_(threads_) {}

  // From here on they are those of another block or cluster.
  void start(uint32_t owner) {
    owner_ = owner;
    start_epoch();
    first_epoch_ = epoch_;
  }
  // All that was done so far is ordered before what follows.
  void start_epoch() { epoch_ = epochs_.start(owner_); }
  uint32_t epoch() const { return epoch_; }
  uint32_t owner() const { return owner_; }

  Moment now(int thread, uint32_t site) const { return {epoch_, clock(thread), site, static_cast<uint16_t>(thread)}; }
  // True if `thread`, at what it does now, knows that the moment is over. @pre the moment is of these clocks' owner
  bool is_ordered(const Moment& moment, int thread) const {
    return moment.epoch < epoch_ || moment.thread == thread || knows(thread, moment);
  }
  // The threads wait for each other.
  void join(std::span<const uint16_t> members);
  void release(int thread, Knowledge& to);
  void acquire(int thread, const Knowledge& from);

  // What the thread knows.
  Frontier frontier(int thread) const;
  // It comes to know that; what it does next is at a new clock.
  void learn(int thread, const Frontier& from);
  // What it does next is at a new clock.
  void tick(int thread);

  uint16_t engine() const { return static_cast<uint16_t>(threads_ - 1); }
  // The engine has done something that only those know who acquire `to`.
  Moment engine_moment(uint32_t site, Knowledge& to);
  // What the thread wrote, and what it has acquired, may be used by the engine and by asynchronous products.
  void fence(int thread);
  // A write that is ordered before what `thread` does now: whether a fence stands between.
  bool is_fenced(const Moment& write, int thread) const;
  // Anybody has fenced.
  bool has_fence() const { return fence_epochs_[0] >= first_epoch_; }

 private:
  uint32_t clock(int thread) const {
    return own_epochs_[static_cast<size_t>(thread)] == epoch_ ? clocks_[static_cast<size_t>(thread)] : 1;
  }
  uint32_t* row(int thread);
  void start(Knowledge& knowledge) const;
  bool knows(int thread, const Moment& moment) const {
    const auto row = static_cast<size_t>(thread);
    return row_epochs_[row] == epoch_ && rows_[row * threads_ + moment.thread] >= moment.clock;
  }

  size_t threads_;
  Epochs& epochs_;
  uint32_t owner_ = 0, epoch_, first_epoch_ = 0;
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
