// What is known of each byte of a memory: whether it was written, by whom last, and who has read it since. Finds
// accesses that nothing orders (FastTrack, Flanagan and Freund, PLDI 2009). Words of 4 bytes have one record as long as
// they are used as a whole, else one a byte.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/emulator/order/launch_order.h"

namespace tilepilot::emulator {

enum class AccessKind : uint8_t { read, write, atomic_read, atomic_update };

// Of the earlier and the later access; `pending`: the earlier one is an asynchronous copy that nobody has waited for;
// `unfenced`: it is a write that the later one, an asynchronous access, needs not see.
enum class ConflictKind : uint8_t { write_read, write_write, read_write, pending, unfenced };

struct Conflict {
  ConflictKind kind;
  bool between_blocks = false;  // the earlier access was another block's
  Moment earlier;
  int64_t at;  // the first byte
};

// What an access met; each at its first byte.
struct Findings {
  std::optional<Conflict> conflict;
  std::optional<int64_t> unwritten;
  bool overwrites_atomic = false;  // a plain write to what was last changed atomically
};

class Shadow {
 public:
  // `written`: all bytes have a value from the start.
  Shadow(const Viewpoint& view, int64_t bytes, bool written);

  // Notes the access and says what is wrong with it. @pre [at, at + bytes) lies in the memory
  Findings access(int64_t at, int64_t bytes, AccessKind kind, const Moment& now);
  // An asynchronous copy begins to write: nobody may access the bytes before it is complete. `by_async_proxy`: writes
  // of threads have to be fenced.
  Findings begin_copy(int64_t at, int64_t bytes, bool by_async_proxy, const Moment& begun);
  // It is over, for those who know `end`.
  void end_copy(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // The same of an asynchronous update, which others may update meanwhile. It is known by the clock that `begun` is
  // given.
  Findings begin_update(int64_t at, int64_t bytes, Moment& begun);
  void end_update(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // An asynchronous access begins to read: nobody may write to the bytes before it is over. It is known by the clock
  // that `begun` is given.
  Findings begin_read(int64_t at, int64_t bytes, Moment& begun);
  // The async proxy reads, and has completed: writes of threads have to be fenced.
  Findings async_read(int64_t at, int64_t bytes, const Moment& now);
  void end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // As at the start.
  void clear();
  // The last write to a byte that was no atomic update.
  const Moment& last_write(int64_t at);

 private:
  // Lanes of a warp that read at the same clock and line.
  struct Readers {
    uint32_t warp, clock, site, lanes;
  };
  // Accesses of one sort, as far as those to come have to know them.
  struct Accesses {
    Moment last;
    uint32_t set = 0;     // of several of its epoch that are not ordered: all, at this place of `sets_`; else 0
    uint32_t others = 0;  // those of other blocks that came before, at this place of `others_`; else 0
  };
  // Of one block that came before: `set` as above.
  struct Other {
    Moment last;
    uint32_t set;
  };
  // Atomic reads: since the last plain write, and the first of each thread since the last update, which it has seen.
  struct Looks {
    Accesses all;
    std::unordered_map<uint64_t, Moment> first;
  };
  // Atomic accesses since the last plain write.
  struct Atomics {
    Moment update;       // the last one: who has seen it has seen those before
    uint32_t looks = 0;  // the place in `looks_`, 0 if there are none
  };
  struct Record {
    Moment write;          // the last plain one
    Accesses reads;        // plain ones since; `set` is the place of the bytes' records where the word is split
    uint32_t atomics = 0;  // the place in `atomics_`, 0 if there are none
    bool written : 1 = false, pending : 1 = false, by_async_proxy : 1 = false, split : 1 = false;
  };
  struct Step {
    AccessKind kind;
    bool copy, by_async_proxy;
    Moment now;
  };
  static constexpr int64_t kPageWords = 1024;
  static constexpr uint32_t kUnderWay = 1u << 31;  // clocks from here on are those of what is not over
  static constexpr size_t kMostOthers = 4;         // blocks whose unordered reads of a word are kept
  using Page = std::vector<Record>;

  const Viewpoint& view_;
  bool written_;
  uint32_t begun_ = 0, reads_under_way_ = 0;
  std::vector<Page> pages_;
  std::vector<std::array<Record, 4>> bytes_;  // of split words; the first is unused
  std::vector<uint32_t> free_bytes_;
  std::vector<std::vector<Readers>> sets_;  // the first is unused
  std::vector<uint32_t> free_sets_;
  std::vector<std::vector<Other>> others_;  // the first is unused
  std::vector<uint32_t> free_others_;
  std::vector<Atomics> atomics_;  // the first is unused
  std::vector<uint32_t> free_atomics_;
  std::vector<std::unique_ptr<Looks>> looks_;  // the first is unused
  std::vector<uint32_t> free_looks_;

  Record& word(int64_t number);
  template <class Visit>
  void for_each(int64_t at, int64_t bytes, bool whole, const Visit& visit);
  std::array<Record, 4>& split(Record& word);
  void unite(Record& word);

  Accesses copied(const Accesses& accesses);
  uint32_t copied_atomics(uint32_t atomics);
  void forget(Accesses& accesses);
  void forget_set(uint32_t set);
  void forget_atomics(Record& record);

  void apply(Record& record, int64_t at, const Step& step, Findings& found);
  std::optional<Conflict> conflict_of(const Record& record, const Step& step) const;
  Conflict conflict(ConflictKind kind, const Moment& earlier) const {
    return {kind, view_.is_foreign(earlier), earlier, 0};
  }
  std::optional<Moment> unordered_write(const Record& record, bool is_atomic, int thread) const;
  bool has_seen_update(const Atomics& atomics, int thread) const;
  bool is_unfenced(const Moment& write, int thread) const {
    return write.epoch != 0 && !view_.is_fenced(write, thread);
  }
  void note(Accesses& accesses, const Moment& now);
  Atomics& atomics_of(Record& record);
  void note_look(Atomics& atomics, const Moment& now);
  void leave_epoch(Accesses& accesses, const Moment& now);
  void add_reader(std::vector<Readers>& set, const Moment& moment);
  static bool is_under_way(const Moment& read) { return read.clock >= kUnderWay; }
  bool is_over(const Moment& read, int thread) const { return !is_under_way(read) && view_.is_ordered(read, thread); }
  std::optional<Moment> unordered(const Moment& last, uint32_t set, int thread) const;
  std::optional<Moment> unordered(const Accesses& accesses, int thread) const;
};

}  // namespace tilepilot::emulator
