// One launch: its blocks in order, and the calls that the kernel's library makes.
#pragma once

#include "compiler/emulator/async_proxy.h"
#include "compiler/emulator/order/cluster_barrier.h"
#include "compiler/emulator/report/step_log.h"

namespace tilepilot::emulator {

class Machine : private BlockOwner {
 public:
  ~Machine() override;
  // `state` is the library's.
  Machine(const EmulatedLaunch& launch, const EmulatedArguments& arguments, const Options& options,
          const std::vector<SourceLine>& sites, emulated::machine_state& state);
  bool valid() const;

  // `kernel` gets the words of the arguments.
  Report run(void (*kernel)(const int64_t* words), const std::vector<int64_t>& words) &&;

 private:
  struct Calls;  // what the library calls

  const EmulatedLaunch& launch_;
  const int64_t first_block_, most_blocks_;
  const Options unwatched_;  // of blocks of a cooperative launch that no step log is for
  emulated::machine_state& state_;
  Report report_;
  Reporter reporter_;
  LaunchOrder order_;
  GlobalMemory global_;
  // What shares clocks: a block, or a cluster.
  struct ClockGroup;
  std::vector<std::unique_ptr<ClockGroup>> clock_groups_;
  // One that all blocks take in turn, or for each its own if they wait for each other.
  struct LiveBlock;
  std::vector<std::unique_ptr<LiveBlock>> live_;
  LiveBlock* running_ = nullptr;

  std::array<int64_t, 3> place_of(int64_t block) const;
  std::array<int64_t, 3> place_in_cluster(int64_t cluster, int64_t rank) const;
  // Of those that run, the one after the last.
  int64_t last_of(int64_t all) const { return most_blocks_ < all - first_block_ ? first_block_ + most_blocks_ : all; }
  // What the block has come to.
  Block::Outcome ended(LiveBlock& live, Block::Outcome outcome);
  Block::Outcome start(LiveBlock& live, std::array<int64_t, 3> place, const std::function<void()>& body);
  Block::Outcome resume(LiveBlock& live, bool passes_grid_barrier);
  int64_t count(Block::Outcome outcome) const;
  void enter(LiveBlock& live);
  // Names the causes of what went wrong in any block.
  void name_causes();
  void run_in_turn(const std::function<void()>& body);
  void run_together(const std::function<void()>& body);
  void run_clusters(const std::function<void()>& body);
  bool run_cluster(int64_t cluster, const std::function<void()>& body);
  void perform(emulated::collective kind, uint32_t detail, int first_thread, std::span<void* const> lanes) override;
  void warp_stopped(int warp) override;
  void barrier_passed() override { ++report_.counters.block_syncs; }
  void thread_ended() override;
  void pass_cluster_barrier(const ClusterBarrier& barrier);
  std::string describe_event(int64_t event) override;
  // Of the running block; null: there is none.
  StepLog* steps() const;
  // For a step log, if there is one: what the running thread does.
  void note(StepKind kind, int64_t at = -1, int64_t phase = 0, int64_t bytes = 0);
  void note_barrier(emulated::barrier_action action, int64_t at, int64_t operand);
  void note_cluster(emulated::cluster_action action);
  void note_copy(const emulated::bulk_request& request);
  // What a warp does, and has done since the step before.
  void note_collective(emulated::collective kind, uint32_t detail, int first_thread, std::span<void* const> lanes);
  void note_matrix(bool stores, int first_thread, const Traffic& traffic, const emulated::shared_place& row);
  void note_operations(int warp);

  void shuffle(uint32_t detail, std::span<void* const> lanes);
  void vote(uint32_t detail, std::span<void* const> lanes);
  void move_matrices(bool stores, uint32_t detail, int first_thread, std::span<void* const> lanes);
};

}  // namespace tilepilot::emulator
