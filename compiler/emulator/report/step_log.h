// What the warps of the first blocks of a launch do, step by step, for who wants to see it (compiler/show). Threads say
// what they do in the log of their accesses, so that what lanes do together is one step of their warp.
#pragma once

#include <map>
#include <vector>

#include "compiler/emulator/report/report.h"

namespace tilepilot::emulator {

enum class StepKind : uint8_t {
  shared_read,
  shared_write,
  load_matrix,   // ldmatrix
  store_matrix,  // stmatrix
  global_read,
  global_write,
  copy,            // cp.async
  commit_copies,   // a group of them
  wait_copies,     // until at most `phase` groups are outstanding
  bulk_load,       // TMA, whose bytes count in phase `phase` of barrier `at`
  bulk_store,      // TMA
  commit_stores,   // a group of them
  wait_stores,     // until at most `phase` groups are outstanding
  barrier_arrive,  // in phase `phase` of barrier `at`
  barrier_copied,  // the same, when the copies of its threads are complete
  barrier_wait,    // until phase `phase` of barrier `at` is complete
  block_sync,      // at the block's barrier `at`, for `phase` threads
  block_arrive,    // there, without waiting
  cluster_arrive,  // in phase `phase` of the cluster's barrier
  cluster_wait,    // until phase `phase` is complete
  grid_sync,
  mma,
  wgmma,
  commit_wgmma,
  wait_wgmma,  // until at most `phase` groups are outstanding
  exchange,    // a shuffle, a vote, a barrier of the warp
  compute,     // what its threads have computed since the step before
};
std::string_view name_of(StepKind kind);

struct Step {
  StepKind kind;
  int32_t warp = 0;      // those of a block's predecessors in its cluster come first
  int32_t lanes = 0;     // that take part
  uint32_t mask = 0;     // which ones, a bit each
  SourceLine line = {};  // of the tile program
  int64_t at = -1;       // shared memory, in bytes; of a barrier its place, those of the n-th block n << 32 further
  int64_t tile = -1;     // where the shared tile begins that it belongs to
  int64_t bytes = 0;     // of all lanes
  int64_t phase = 0;
  Traffic traffic = {};                    // of an access
  int64_t width = 0;                       // of an access: bytes of a lane
  int64_t m = 0, n = 0, k = 0;             // of a matrix product, as this warp does it
  int64_t operand_bits = 0;                // of a matrix product
  targets::c::Operations operations = {};  // of a warp's instructions: of `compute`
};

class StepLog {
 public:
  // The launch ends when it holds so many steps, or so many multiply-adds of matrix products.
  explicit StepLog(int64_t most_steps = 200'000, double most_products = 4e9)
      : most_steps_(most_steps), most_products_(most_products) {}

  const std::vector<Step>& steps() const { return steps_; }  // of each warp in its order
  // The launch was ended before its blocks were.
  bool is_cut() const { return is_cut_; }

  // For the machine. A step that a lane takes, which it tells its log of accesses by number.
  int64_t prepare(const Step& step) {
    prepared_.push_back(step);
    return static_cast<int64_t>(prepared_.size()) - 1;
  }
  const Step& prepared(int64_t number) const { return prepared_[static_cast<size_t>(number)]; }
  void add(Step step);
  // Operations of a warp since it was asked for last. `counts`: of its lanes, each by counter.
  void add_operations(int warp, const std::vector<OperationCounter>& table, const uint64_t* counts, size_t lanes);
  // True once the launch should end.
  bool is_full();

 private:
  int64_t most_steps_;
  double most_products_, products_ = 0;
  bool is_cut_ = false;
  std::vector<Step> steps_, prepared_;
  std::map<int, std::vector<uint64_t>> counted_;  // by warp
};

}  // namespace tilepilot::emulator
