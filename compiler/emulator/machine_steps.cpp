// What a machine tells a step log.
#include <algorithm>
#include <bit>

#include "compiler/emulator/live_block.h"
#include "compiler/emulator/machine.h"
#include "compiler/emulator/tensor_core.h"

namespace tilepilot::emulator {

using emulated::barrier_action;
using emulated::collective;

namespace {

// Barriers of different blocks of a cluster have different places.
int64_t place_of_barrier(int64_t at, int64_t rank) { return at + (rank << 32); }

}  // namespace

StepLog* Machine::steps() const { return running_->memories.steps(); }

void Machine::note(StepKind kind, int64_t at, int64_t phase, int64_t bytes) {
  if (steps() == nullptr) return;
  Step step{kind};
  step.at = kind == StepKind::block_sync || kind == StepKind::block_arrive ? place_of_barrier(at, running_->rank) : at;
  step.phase = phase;
  step.bytes = bytes;
  running_->memories.log_step(steps()->prepare(step), running_->block.now());
}

// Which phase is meant is known before the barrier changes.
void Machine::note_barrier(barrier_action action, int64_t at, int64_t operand) {
  if (steps() == nullptr) return;
  const int64_t rank = action == barrier_action::arrive_remote ? operand : running_->rank;
  if (rank < 0 || rank >= static_cast<int64_t>(live_.size())) return;
  const auto phase = (launch_.cooperative ? *running_ : *live_[static_cast<size_t>(rank)]).async_proxy.phase_of(at);
  if (!phase) return;
  const int64_t place = place_of_barrier(at, rank);
  switch (action) {
    case barrier_action::arrive:
    case barrier_action::arrive_expect:
    case barrier_action::arrive_remote:
      return note(StepKind::barrier_arrive, place, *phase);
    case barrier_action::arrive_copied:
      return note(StepKind::barrier_copied, place, *phase);
    case barrier_action::wait: {
      const bool has_passed = (*phase & 1) != (operand & 1);
      return note(StepKind::barrier_wait, place, has_passed ? *phase - 1 : *phase);
    }
    default:
      return;
  }
}

void Machine::note_cluster(emulated::cluster_action action) {
  using emulated::cluster_action;
  if (steps() == nullptr) return;
  const ClusterBarrier& barrier = *running_->cluster;
  const int64_t phase =
      action == cluster_action::wait ? barrier.phase_of(running_->block.now().thread) : barrier.phase();
  if (action != cluster_action::wait) note(StepKind::cluster_arrive, -1, phase);
  if (action == cluster_action::wait || action == cluster_action::sync) note(StepKind::cluster_wait, -1, phase);
}

void Machine::note_copy(const emulated::bulk_request& request) {
  if (steps() == nullptr) return;
  int64_t bytes = request.bytes;
  if (request.map != nullptr) {
    bytes = request.map->element_bytes;
    for (int axis = 0; axis < request.map->rank; ++axis) bytes *= request.map->box[axis];
  }
  Step step{StepKind::bulk_store};
  step.bytes = bytes;
  const bool loads = request.kind == emulated::bulk_kind::load || request.kind == emulated::bulk_kind::load_bytes;
  const bool to_block = request.kind == emulated::bulk_kind::to_block;
  const auto add = [&](int64_t rank) {
    if (rank < 0 || rank >= static_cast<int64_t>(live_.size())) return;
    LiveBlock& target = launch_.cooperative ? *running_ : *live_[static_cast<size_t>(rank)];
    step.kind = StepKind::bulk_load;
    step.at = place_of_barrier(request.barrier.at, rank);
    step.phase = target.async_proxy.phase_of(request.barrier.at).value_or(0);
    running_->memories.log_step(steps()->prepare(step), running_->block.now());
  };
  step.tile = request.shared.first;
  step.width = request.shared.at - request.shared.first;
  if (to_block) return add(request.blocks);
  if (loads && request.blocks == 0) return add(running_->rank);
  if (!loads) {
    running_->memories.log_step(steps()->prepare(step), running_->block.now());
    return;
  }
  for (int64_t rank = 0; rank < 32; ++rank)
    if ((request.blocks >> rank & 1u) != 0) add(rank);
}

void Machine::note_collective(collective kind, uint32_t detail, int first_thread, std::span<void* const> lanes) {
  Step step{StepKind::exchange};
  step.warp = static_cast<int32_t>(running_->block.first_thread() + first_thread) / 32;
  for (size_t lane = 0; lane < lanes.size(); ++lane) step.mask |= uint32_t{lanes[lane] != nullptr} << lane;
  step.lanes = std::popcount(step.mask);
  step.line = reporter_.line(state_.site);
  const auto bits_of_a = [](uint32_t types) { return 8 * bytes_of(static_cast<emulated::operand>(types >> 4 & 15u)); };
  switch (kind) {
    case collective::load_matrix:
    case collective::store_matrix:
      return;  // with their traffic
    case collective::wgmma_wait:
      step.kind = StepKind::wait_wgmma;
      step.phase = detail;
      break;
    case collective::mma:
      step.kind = StepKind::mma;
      step.m = detail >> 20 & 255u;
      step.n = 8;
      step.k = detail >> 12 & 255u;
      step.operand_bits = bits_of_a(detail);
      break;
    case collective::wgmma: {
      const emulated::wgmma_shape& shape = static_cast<const emulated::wgmma_lane*>(lanes[0])->shape;
      step.kind = StepKind::wgmma;
      step.m = 16;
      step.n = shape.n;
      step.k = shape.k;
      step.operand_bits = bits_of_a(shape.types);
      break;
    }
    default:
      break;
  }
  steps()->add(std::move(step));
}

void Machine::note_matrix(bool stores, int first_thread, const Traffic& traffic, const emulated::shared_place& row) {
  Step step{stores ? StepKind::store_matrix : StepKind::load_matrix};
  step.warp = static_cast<int32_t>(running_->block.first_thread() + first_thread) / 32;
  step.lanes = 32;
  step.mask = ~uint32_t{0};
  step.line = reporter_.line(state_.site);
  step.at = row.at;
  step.tile = row.first;
  step.width = 16;
  step.bytes = traffic.bytes;
  step.traffic = traffic;
  steps()->add(std::move(step));
}

void Machine::note_operations(int warp) {
  const OperationCounters& counters = running_->block.operation_counters();
  if (counters.table().empty()) return;
  const auto first = static_cast<size_t>(warp) * 32;
  const auto size = static_cast<size_t>(running_->block.size());
  steps()->add_operations(static_cast<int>(running_->block.first_thread()) / 32 + warp, counters.table(),
                          counters.of(static_cast<int>(first)), std::min<size_t>(32, size - first));
}

}  // namespace tilepilot::emulator
