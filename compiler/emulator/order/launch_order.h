// What blocks of a launch know of each other, and threads through atomic elements (PTX ISA, "Memory Consistency
// Model"). Fences are sequentially consistent (fence_device is fence.sc): what is before a fence is ordered before what
// is after another one if an atomic access after the first was seen by an atomic access before the second, or changed
// what that has seen. "After" and "before" are what barriers order, too, not only what one thread does.
//
// What each update gave on is kept with the element, and what each block has taken with the block: what follows from
// both is only looked up where blocks access the same memory.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "compiler/emulator/order/fence_log.h"

namespace tilepilot::emulator {

// An atomic element from one plain write to the next.
struct AtomicElement {
  // What an update gave to those that see it.
  struct Release {
    uint32_t owner;
    std::shared_ptr<const Frontier> known;
  };
  std::vector<Release> releases;
  bool is_shared = false;  // all releases are of one owner
};

// The first so many releases of an element: seen at a time, or taken by a fence.
struct Acquisition {
  Moment at;
  const AtomicElement* element;
  size_t count;
};

using AtomicElements = std::map<const char*, std::unique_ptr<AtomicElement>>;

// What all blocks share.
class LaunchOrder {
 public:
  Epochs epochs;
  AtomicElements elements;  // in global memory

  // @post owners count from 0
  uint32_t add_owner(std::array<int64_t, 3> block);
  std::array<int64_t, 3> block_at(uint32_t epoch) const { return blocks_[epochs.owner(epoch)]; }
  // All that was done so far is ordered before what follows.
  void start_phase();
  bool is_of_earlier_phase(const Moment& moment) const { return moment.epoch < phase_; }
  // In the order of their epochs.
  std::vector<Acquisition>& acquisitions(uint32_t owner) { return acquisitions_[owner]; }
  // Its bytes were written: no later access sees what was in such elements.
  static void overwrite(AtomicElements& elements, const char* first, int64_t bytes,
                        std::vector<std::unique_ptr<AtomicElement>>& gone);
  std::vector<std::unique_ptr<AtomicElement>> gone;  // elements that acquisitions may still name

 private:
  uint32_t phase_ = 1;
  std::vector<std::array<int64_t, 3>> blocks_;  // of each owner
  std::unordered_map<uint32_t, std::vector<Acquisition>> acquisitions_;
};

// The happens-before closure: what is known of other blocks, looked up as far as it is needed.
class HappensBeforeClosure {
 public:
  explicit HappensBeforeClosure(LaunchOrder& launch, const HappensBeforeClosure* known = nullptr)
      : launch_(launch), known_(known) {}
  void add(const AtomicElement& element, size_t count);
  // @pre the moment is of the owner's clocks
  bool knows(const Moment& moment, uint32_t owner);
  // All that is known of an owner.
  const Frontier* of(uint32_t owner);

 private:
  struct Range {
    const AtomicElement* element;
    size_t first, end;
  };
  LaunchOrder& launch_;
  const HappensBeforeClosure* known_;  // where nothing has to be looked up again
  std::unordered_map<uint32_t, Frontier> found_;
  std::unordered_map<const AtomicElement*, size_t> added_;  // so many of its releases
  std::unordered_map<uint32_t, size_t> followed_;           // so many of an owner's acquisitions
  std::deque<Range> left_;

  size_t added(const AtomicElement& element) const;
  bool step();
  void follow(uint32_t owner, const Frontier& known);
};

// Happens-before among the threads that share clocks: those of a block, or of a cluster.
class HappensBefore {
 public:
  // `together`: others run meanwhile, and may give back what they got from here.
  HappensBefore(LaunchOrder& launch, Clocks& clocks, size_t threads, bool together);

  // A block or a cluster begins.
  void start(std::array<int64_t, 3> block);
  // It continues after a grid barrier.
  void start_phase();

  void fence(int thread);
  // An atomic access. Those in shared memory are of these threads alone.
  void access(int thread, const char* element, bool is_shared, bool changes);
  // Something else writes there.
  void overwrite(const char* first, int64_t bytes, bool is_shared);

  uint32_t owner() const { return clocks_.owner(); }
  bool is_foreign(const Moment& moment) const { return launch_.epochs.owner(moment.epoch) != owner(); }
  // The general form of Clocks::is_ordered.
  bool is_ordered(const Moment& moment, int thread);

 private:
  // Releases that atomic accesses of a thread observed; no fence of its own has taken those after the first so many.
  struct ObservedReleases {
    std::vector<Acquisition> all;
    size_t taken = 0;
  };
  using Counts = std::unordered_map<const AtomicElement*, size_t>;

  LaunchOrder& launch_;
  Clocks& clocks_;
  const bool together_;
  FenceLog fences_;
  AtomicElements shared_elements_;
  std::vector<std::unique_ptr<AtomicElement>> shared_gone_;

  // Of earlier epochs, which all threads know.
  Counts seen_;      // and no fence has taken
  Counts acquired_;  // the same as `reach_`
  std::unique_ptr<HappensBeforeClosure> closure_;
  // Of this one.
  uint32_t epoch_ = 0;
  std::vector<ObservedReleases> observed_;  // of each thread
  std::vector<uint16_t> seeing_;            // threads that have any
  std::vector<Acquisition> acquisitions_;
  std::unordered_map<const AtomicElement*, std::vector<size_t>> acquisitions_of_;  // places in there
  std::map<std::pair<const AtomicElement*, size_t>, HappensBeforeClosure> closures_;

  void clear();
  void catch_up();
  void note_seen(int thread, const AtomicElement& element);
  size_t acquired_by(int thread, const AtomicElement& element) const;
  void acquire(int thread, const AtomicElement& element, size_t count, Frontier& own);
  void acquire_observed(int thread, Frontier& own);
  HappensBeforeClosure& closure(const AtomicElement& element, size_t count);
};

// From where a memory's accesses are judged.
struct Viewpoint {
  const Clocks* clocks = nullptr;
  FenceLog* fences = nullptr;      // for what works beside the threads
  HappensBefore* order = nullptr;  // null: all accesses are of these clocks
  uint32_t own_first = 0;          // epochs from here on are these clocks'

  bool is_ordered(const Moment& moment, int thread) const {
    if (moment.epoch == 0) return true;
    if (moment.epoch >= own_first) return clocks->is_ordered(moment, thread);
    return order->is_ordered(moment, thread);
  }
  bool is_foreign(const Moment& moment) const { return moment.epoch < own_first && order->is_foreign(moment); }
  // All threads know that it is over.
  bool is_past(const Moment& moment) const { return moment.epoch >= own_first && moment.epoch < clocks->epoch(); }
  // Of a write that is ordered: whether the async proxy sees it in what `thread` issues. What another block wrote has
  // to be fenced by this one.
  bool is_fenced(const Moment& write, int thread) const;
};

}  // namespace tilepilot::emulator
