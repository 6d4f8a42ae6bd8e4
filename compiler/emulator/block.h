// The threads of one block: coroutines that take turns, the warps that they form, and the barriers where they wait.
#pragma once

#include <functional>
#include <vector>

#include "compiler/emulator/emulator.h"
#include "compiler/emulator/order/clocks.h"
#include "compiler/emulator/prelude/interface.h.in"
#include "compiler/emulator/report/operation_counters.h"
#include "compiler/emulator/report/reporter.h"
#include "compiler/emulator/stacks.h"

namespace tilepilot::emulator {

// What a block does for whom it belongs to.
class BlockOwner {
 public:
  virtual ~BlockOwner() = default;
  // All lanes have come: `lanes` are what they brought, null where there is no thread.
  virtual void perform(emulated::collective kind, uint32_t detail, int first_thread, std::span<void* const> lanes) = 0;
  // All lanes of the warp stand still.
  virtual void warp_stopped(int warp) = 0;
  virtual void barrier_passed() = 0;
  // The running thread.
  virtual void thread_ended() = 0;
  // What is missing for the event: ", whose ...".
  virtual std::string describe_event(int64_t event) = 0;
};

// A block among those whose threads the clocks know.
struct BlockPlace {
  int64_t rank = 0, blocks = 1;
};

class Block {
 public:
  Block(const EmulatedLaunch& launch, BlockPlace place, emulated::machine_state& state, Clocks& clocks,
        Reporter& reporter);
  bool valid() const { return stacks_.valid(); }

  enum class Outcome : uint8_t { ended, abandoned, at_grid_barrier, polling, waiting };
  // Runs body() in each thread until all have ended or stand at the barrier of the grid, or those that
  // could go on only look at memory that other blocks may change, or, in a cluster, none can go on.
  Outcome run(const std::function<void()>& body, BlockOwner& owner);
  Outcome resume(bool passes_grid_barrier);
  bool can_go_on() const { return ready_count_ > 0; }
  // Before any block of the cluster runs.
  void start_cluster() { begun_ = false; }
  bool has_begun() const { return begun_; }
  bool has_ended() const { return begun_ && ended_ == size(); }
  // After `waiting`: the other blocks cannot go on, either.
  void report_deadlock();
  // After `polling`: nobody else can change anything.
  void report_polling();
  // After `at_grid_barrier`: the other blocks never come there.
  void report_grid_barrier();

  // Threads have numbers in their block; the clocks' numbers, and those of moments, count the cluster's.
  int64_t first_thread() const { return place_.rank * size(); }
  // For the running thread:
  int thread() const { return current_; }
  int64_t size() const { return static_cast<int64_t>(threads_.size()); }
  const OperationCounters& operation_counters() const { return operation_counters_; }
  Moment now() const { return clocks_.now(number_of(current_), state_.site); }
  // Where another thread of the warp stands.
  Moment now_of(int thread) const { return clocks_.now(number_of(thread), threads_[static_cast<size_t>(thread)].site); }
  std::vector<uint16_t> numbers_of(std::span<const uint16_t> threads) const;
  void run_collective(emulated::collective kind, uint32_t detail, void* lane);
  void sync(int64_t barrier, int64_t expected);
  void arrive(int64_t barrier, int64_t expected);
  void sync_grid();
  // Until somebody wakes those who wait for `event`, which may be too early.
  void wait_for(int64_t event);
  void wake(int64_t event);
  // Lets others run. `polls`: it waits for a change that another thread makes.
  void let_others_run(bool polls);
  // Ends the block at once.
  [[noreturn]] void abandon();

 private:
  enum class Stop : uint8_t { none, collective, barrier, event, grid, paused, ended };
  struct Thread {
    Context context;
    Stop stop = Stop::none;
    emulated::collective collective{};
    uint32_t detail = 0, site = 0;
    int64_t barrier = 0;  // or the event
    void* lane = nullptr;
  };
  struct Warp {
    int lanes = 0, stopped = 0;  // `stopped`: with those that ended
  };
  struct Barrier {
    int64_t expected = 0;
    std::vector<uint16_t> arrived;  // those that wait among them
    std::vector<uint16_t> passing;  // that do not wait
    Knowledge known;                // to these
    Moment first;
  };
  static constexpr int kWarp = 32, kBarriers = 16;
  static constexpr int64_t kMostPolls = 1 << 16;  // in a row, without any other event

  std::array<int64_t, 3> extents_;
  BlockPlace place_;
  emulated::machine_state& state_;
  Clocks& clocks_;
  Reporter& reporter_;
  BlockOwner* owner_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Stacks stacks_;
  Context scheduler_;
  std::vector<Thread> threads_;
  OperationCounters operation_counters_;
  std::vector<Warp> warps_;
  std::vector<uint16_t> ready_;  // a ring
  size_t ready_first_ = 0, ready_count_ = 0;
  std::array<Barrier, kBarriers> barriers_;
  int current_ = 0;
  int64_t ended_ = 0, polls_ = 0;
  int64_t at_grid_ = 0;
  bool begun_ = false;
  Outcome outcome_ = Outcome::ended;

  static void run_thread(void* block);
  int number_of(int thread) const { return static_cast<int>(first_thread()) + thread; }
  Thread& running() { return threads_[static_cast<size_t>(current_)]; }
  Warp& warp_of(int thread) { return warps_[static_cast<size_t>(thread / kWarp)]; }
  std::span<Thread> lanes_of(int warp);

  void make_ready(int thread);
  void end();
  void stop(Stop kind);
  void switch_away();
  Outcome enter();
  void leave(Outcome outcome);
  void take_turn(int thread);

  void complete_collective(int warp);
  bool agrees(const Thread& a, const Thread& b) const;
  void check_stopped_warp(int warp);
  Barrier* join_barrier(int64_t barrier, int64_t expected);
  void pass_if_full(int64_t number);
  void pass(Barrier& barrier);
  [[noreturn]] void report_divergence(int warp);
  std::string what(const Thread& thread) const;
  std::string standstill() const;
};

}  // namespace tilepilot::emulator
