// What is known of each byte of a memory: whether it was written, by whom last, and who has read it since. Finds
// accesses that nothing orders (FastTrack, Flanagan and Freund, PLDI 2009). Words of 4 bytes have one record as long as
// they are used as a whole, else one a byte.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/emulator/clocks.h"

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
};

class Shadow {
 public:
  // `written`: all bytes have a value from the start.
  Shadow(const Clocks& clocks, int64_t bytes, bool written);

  // Notes the access and says what is wrong with it. @pre [at, at + bytes) lies in the memory
  Findings access(int64_t at, int64_t bytes, AccessKind kind, const Moment& now);
  // An asynchronous copy begins to write: nobody may touch the bytes before it is over. `by_engine`: writes of threads
  // have to be fenced.
  Findings begin_copy(int64_t at, int64_t bytes, bool by_engine, const Moment& begun);
  // It is over, for those who know `end`.
  void end_copy(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // An asynchronous access begins to read: nobody may write to the bytes before it is over.
  Findings begin_read(int64_t at, int64_t bytes, const Moment& begun);
  void end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // As at the start.
  void clear();
  // Accesses in epochs from `first` up to `end` are those of other blocks, which nothing orders.
  void set_other_blocks(uint32_t first, uint32_t end) {
    others_first_ = first;
    others_end_ = end;
  }

 private:
  // Lanes of a warp that read at the same clock and line.
  struct Readers {
    uint32_t warp, clock, site, lanes;
  };
  struct Record {
    Moment write, read;    // `read`: the last one
    uint32_t readers = 0;  // of several that are not ordered: all, at this place of `sets_`; else 0
    bool written = false, pending = false, atomic = false;
    bool split = false;  // `readers` is the place of the bytes' records
  };
  struct Step {
    AccessKind kind;
    bool copy, by_engine;
    Moment now;
  };
  static constexpr int64_t kPageWords = 1024;
  static constexpr uint32_t kUnderWay = UINT32_MAX;  // the clock of a read that is not over
  using Page = std::vector<Record>;

  const Clocks& clocks_;
  bool written_;
  uint32_t others_first_ = 0, others_end_ = 0;
  std::vector<Page> pages_;
  std::vector<std::array<Record, 4>> bytes_;  // of split words; the first is unused
  std::vector<uint32_t> free_bytes_;
  std::vector<std::vector<Readers>> sets_;  // the first is unused
  std::vector<uint32_t> free_sets_;

  Record& word(int64_t number);
  template <class Visit>
  void for_each(int64_t at, int64_t bytes, bool whole, const Visit& visit);
  std::array<Record, 4>& split(Record& word);
  void unite(Record& word);

  uint32_t new_set();
  void apply(Record& record, int64_t at, const Step& step, Findings& found);
  std::optional<Conflict> conflict_of(const Record& record, const Step& step) const;
  bool is_of_other_block(const Moment& moment) const {
    return moment.epoch != 0 && moment.epoch >= others_first_ && moment.epoch < others_end_;
  }
  void note_read(Record& record, const Moment& now);
  void add_reader(std::vector<Readers>& set, const Moment& moment);
  bool is_over(const Moment& read, int thread) const {
    return read.clock != kUnderWay && clocks_.is_ordered(read, thread);
  }
  std::optional<Moment> unordered_reader(const Record& record, const Moment& now) const;
};

}  // namespace tilepilot::emulator
