// What blocks of a launch know of each other, and threads through atomic elements (PTX ISA, "Memory Consistency
// Model"). Fences are sequentially consistent (fence_device is fence.sc): what is before a fence is ordered before what
// is after another one if an atomic access after the first was seen by an atomic access before the second, or changed
// what that has seen. "After" and "before" are what barriers order, too, not only what one thread does.
//
// What each update gave on is kept with the element, and what each block has taken with the block: what follows from
// both is only looked up where accesses of different blocks meet.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "compiler/emulator/fence_log.h"

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

// What somebody has come to know of other blocks, looked up as far as it was asked for.
class Reach {
 public:
  explicit Reach(LaunchOrder& launch, const Reach* known = nullptr) : launch_(launch), known_(known) {}
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
  const Reach* known_;  // where nothing has to be looked up again
  std::unordered_map<uint32_t, Frontier> found_;
  std::unordered_map<const AtomicElement*, size_t> added_;  // so many of its releases
  std::unordered_map<uint32_t, size_t> followed_;           // so many of an owner's acquisitions
  std::deque<Range> left_;

  size_t added(const AtomicElement& element) const;
  bool step();
  void follow(uint32_t owner, const Frontier& known);
};

// Of the threads that share clocks: those of a block, or of a cluster.
class TeamOrder {
 public:
  // `together`: others run meanwhile, and may give back what they got from here.
  TeamOrder(LaunchOrder& launch, Clocks& clocks, size_t threads, bool together);

  // A block or a cluster begins.
  void start(std::array<int64_t, 3> block);
  // It goes on after all blocks have met.
  void start_phase();

  void fence(int thread);
  // An atomic access. Those in shared memory are of this team alone.
  void access(int thread, const char* element, bool is_shared, bool changes);
  // Something else writes there.
  void overwrite(const char* first, int64_t bytes, bool is_shared);

  uint32_t owner() const { return clocks_.owner(); }
  bool is_foreign(const Moment& moment) const { return launch_.epochs.owner(moment.epoch) != owner(); }
  // The general form of Clocks::is_ordered.
  bool is_ordered(const Moment& moment, int thread);

 private:
  // What atomic accesses of a thread saw; those after the first so many no fence of its own has taken.
  struct Sights {
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
  std::unique_ptr<Reach> reach_;
  // Of this one.
  uint32_t epoch_ = 0;
  std::vector<Sights> sights_;    // of each thread
  std::vector<uint16_t> seeing_;  // threads that have any
  std::vector<Acquisition> acquisitions_;
  std::unordered_map<const AtomicElement*, std::vector<size_t>> acquisitions_of_;  // places in there
  std::map<std::pair<const AtomicElement*, size_t>, Reach> reaches_;

  void clear();
  void catch_up();
  void note_seen(int thread, const AtomicElement& element);
  size_t acquired_by(int thread, const AtomicElement& element) const;
  void acquire(int thread, const AtomicElement& element, size_t count, Frontier& own);
  void acquire_sights(int thread, Frontier& own);
  Reach& reach(const AtomicElement& element, size_t count);
};

// From where a memory's accesses are judged.
struct Viewpoint {
  const Clocks* clocks = nullptr;
  FenceLog* fences = nullptr;  // for what works beside the threads
  TeamOrder* team = nullptr;   // null: all accesses are of these clocks
  uint32_t own_first = 0;      // epochs from here on are these clocks'

  bool is_ordered(const Moment& moment, int thread) const {
    if (moment.epoch == 0) return true;
    if (moment.epoch >= own_first) return clocks->is_ordered(moment, thread);
    return team->is_ordered(moment, thread);
  }
  bool is_foreign(const Moment& moment) const { return moment.epoch < own_first && team->is_foreign(moment); }
  // All threads know that it is over.
  bool is_past(const Moment& moment) const { return moment.epoch >= own_first && moment.epoch < clocks->epoch(); }
  // Of a write that is ordered: whether the engine sees it in what `thread` lets it do. What another block wrote has to
  // be fenced by this one.
  bool is_fenced(const Moment& write, int thread) const;
};

}  // namespace tilepilot::emulator
