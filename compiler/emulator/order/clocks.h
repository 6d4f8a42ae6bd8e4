// Who knows what of whom: vector clocks of a block's threads. A barrier of the whole block starts a new epoch, before
// which everything is ordered, so clocks are only kept of what happens between two of them.
#pragma once

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

// Threads, and after them the channels of what works beside them: those of copies and products that are over for
// somebody. Who knows of something on a channel knows of all before it there.
class Clocks {
 public:
  enum class Beside : uint8_t { bulk_copies, copies_of_threads, products };

  Clocks(int64_t threads, Epochs& epochs)
      : own_threads_(static_cast<size_t>(threads)),
        threads_(own_threads_ + 3 * kChannels),
        epochs_(epochs),
        epoch_(epochs.start(0)),
        clocks_(threads_),
        own_epochs_(threads_),
        row_epochs_(threads_) {}

  // From here on they are those of another block or cluster.
  void start(uint32_t owner) {
    owner_ = owner;
    start_epoch();
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

  bool is_beside(const Moment& moment) const { return moment.thread >= own_threads_; }
  bool is_bulk_copy(const Moment& moment) const {
    return is_beside(moment) && moment.thread < own_threads_ + kChannels;
  }
  // Something is over for those alone who acquire `to`. Which of several channels: `number`.
  Moment moment_beside(Beside what, int64_t number, uint32_t site, Knowledge& to);

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

  static constexpr size_t kChannels = 32;  // of each sort

  size_t own_threads_, threads_;
  Epochs& epochs_;
  uint32_t owner_ = 0, epoch_;
  std::vector<uint32_t> clocks_, own_epochs_;  // a thread's own clock, if its epoch is this one; else it is 1
  std::vector<uint32_t> row_epochs_;           // likewise what it knows of others; else that is nothing
  std::vector<uint32_t> rows_;                 // threads x threads, made when first needed
  std::vector<uint32_t> joined_;
};

}  // namespace tilepilot::emulator
