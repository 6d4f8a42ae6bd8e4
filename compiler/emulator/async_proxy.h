// The async proxy: hardware barriers with phases, bulk copies and wgmma. A copy moves its bytes at once, but counts as
// outstanding until a thread waits for it.
#pragma once

#include <deque>
#include <map>

#include "compiler/emulator/memories.h"

namespace tilepilot::emulator {

class AsyncProxy {
 public:
  AsyncProxy(Memories& memories, Clocks& clocks, FenceLog& fences, Reporter& reporter, Block& block)
      : memories_(memories), clocks_(clocks), fences_(fences), reporter_(reporter), block_(block) {}

  void start_block();
  // All threads have left: nothing may still read or write the block's memory.
  void end_block();
  // Of all blocks of the cluster, this one among them.
  void set_peers(std::vector<AsyncProxy*> peers) { peers_ = std::move(peers); }
  // The running thread's.
  int64_t act(emulated::barrier_action action, const emulated::shared_place& at, int64_t operand);
  void copy(const emulated::bulk_request& request, Counters& counters);
  void commit_stores() { ++own().stores.groups; }
  // `written`: in global memory, else its own may be written again.
  void wait_stores(int64_t under_way, bool written);
  void fence() { fences_.add(block_.now().thread); }

  // The running thread's: registers that it has written so far are visible to later wgmma.
  void fence_wgmma(uint32_t fences) { own().fences = fences; }

  // A warp's. `fences`: the number that registers bear which were written last.
  void multiply(int first_thread, std::span<void* const> lanes, uint32_t fences);
  void commit_wgmma() { ++own().wgmma.groups; }
  void wait_wgmma(int first_thread, int64_t under_way);

  // The phase that a barrier is in, from 0 on; none: there is no such barrier.
  std::optional<int64_t> phase_of(int64_t at) const;
  // What a barrier waits for.
  std::string describe(int64_t at) const;
  // The block is over: where its threads did something wrong, waits for another phase than they needed are the cause.
  void tell_wrong_phases();

  // That of a block of the cluster, which the running thread `does` something to. Null: no such block runs, which is
  // reported.
  AsyncProxy* peer_of(int64_t block, const char* does, const Moment& now);
  Memories& memories() { return memories_; }

 private:
  struct Copy {
    int64_t at, bytes, phase;
    Moment begun;
    AsyncProxy* source = nullptr;  // of a copy from another block's memory, there at `from`
    int64_t from = 0;
  };
  static constexpr int64_t kNoPhase = INT64_MIN;
  // A thread at a barrier.
  struct Waiter {
    int64_t phase = kNoPhase;            // that it waited for last; -1 is the one before the first
    int64_t late = kNoPhase, ahead = 0;  // waited for when the barrier was at `ahead`, at least two phases later
    bool waits = false, is_late = false, skips = false, from_before = false;
    Moment first, at;  // its first wait, and the late one
  };
  struct PhaseBarrier {
    int64_t count = 0, pending = 0, bytes = 0, phase = 0;
    Knowledge now, completed;
    std::vector<Copy> copies;  // that nobody has waited for
    Moment init;
    Moment announced;             // to the async proxy, by the thread that made it
    bool has_copies = false;      // that it counts, at any time
    std::vector<Waiter> waiters;  // by thread; empty before anybody waits
  };
  // Reads of shared memory, in groups that a thread waits for.
  struct Read {
    int64_t at, bytes, group;
    Moment begun;
  };
  // Registers of outstanding wgmma: accumulators bear 0 until they are complete, those of A what they bore.
  struct Registers {
    emulated::register_marks marks;
    int64_t group;
    uint32_t fences;
    Moment begun;
    bool overlap(const emulated::register_marks& other) const {
      return marks.written < other.written + other.count && other.written < marks.written + marks.count;
    }
  };
  // Of what stores write.
  struct Write {
    emulated::global_place place;
    int64_t bytes, group;
    Moment begun;
    bool adds = false;
  };
  struct Reads {
    int64_t groups = 0;
    std::deque<Read> under_way;
  };
  struct Own {
    Reads stores, wgmma;
    std::deque<Write> writes;
    uint32_t fences = 0;  // when the last wgmma_fence was
    std::deque<Registers> sums, of_a;
  };

  Memories& memories_;
  Clocks& clocks_;
  FenceLog& fences_;
  Reporter& reporter_;
  Block& block_;
  std::map<int64_t, PhaseBarrier> barriers_;  // by place in shared memory
  std::vector<Own> owns_;                     // of each thread
  std::vector<AsyncProxy*> peers_;
  size_t defects_before_ = 0;  // the block
  // A wgmma that not all warps of the warpgroup have executed.
  struct Issue {
    emulated::wgmma_shape shape;
    uint64_t a_place, b_place;
    bool accumulate;
    Moment first;
  };
  struct Warpgroup {
    std::array<int64_t, 4> counts{};
    std::deque<Issue> issued;  // of which the last one is the most that any warp has executed
    int64_t done = 0;          // before those
  };
  std::vector<Warpgroup> groups_;

  Own& own() { return owns_[static_cast<size_t>(block_.thread())]; }
  void init(int64_t at, int64_t count, const Moment& now);
  PhaseBarrier* find(const emulated::shared_place& at, const Moment& now);
  void announce(const Moment& now);
  void check_announced(const PhaseBarrier& barrier, int64_t at, const Moment& now);
  void arrive(PhaseBarrier& barrier, int64_t at, const Moment& now);
  void complete_if_due(PhaseBarrier& barrier, int64_t at);
  static bool has_passed(const PhaseBarrier& barrier, int64_t parity) { return (barrier.phase & 1) != (parity & 1); }
  void learn(PhaseBarrier& barrier, int64_t at);
  int64_t wait(PhaseBarrier& barrier, const emulated::shared_place& at, int64_t parity, bool tests);
  void note_wait(PhaseBarrier& barrier, int64_t parity, const Moment& now);
  bool tell_wrong_phase(const PhaseBarrier& barrier, int64_t at, const Waiter& waiter);
  void misuse(const Moment& first, const Moment& second, std::string message);

  int64_t number(int64_t at) const { return at / 8 + block_.first_thread(); }  // of a barrier, to tell it from others
  void issue(int first_thread, const emulated::wgmma_lane& lane);
  void check_groups();
  void hold_registers(emulated::wgmma_lane& lane, int thread, uint32_t fences);
  void check_fenced(const emulated::register_marks& marks, const char* what, int thread);
  void check_sum(const emulated::wgmma_lane& held, int thread, int index);
  void give_back(Own& own, int thread, int64_t under_way);
  void tell(DefectKind kind, const Moment& first, const Moment& second, std::string message);

  struct Box;
  bool is_possible(const emulated::bulk_request& request, int64_t bytes, const Moment& now);
  void copy_to_block(const emulated::bulk_request& request, Counters& counters);
  void load_into(const emulated::bulk_request& request, int64_t bytes, const Moment& now, Counters& counters);
  void move_box(const emulated::bulk_request& request, char* shared, const Moment& now, Counters& counters);
  void move_row(const emulated::bulk_request& request, const Box& row, const Moment& now, Counters& counters);
  void end_reads(Reads& reads, int64_t under_way, const Moment& end);
};

}  // namespace tilepilot::emulator
