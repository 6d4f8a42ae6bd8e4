#include "compiler/emulator/report/step_log.h"

#include <algorithm>
#include <bit>

namespace tilepilot::emulator {

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::shared_read:
      return "shared load";
    case StepKind::shared_write:
      return "shared store";
    case StepKind::load_matrix:
      return "ldmatrix";
    case StepKind::store_matrix:
      return "stmatrix";
    case StepKind::global_read:
      return "global load";
    case StepKind::global_write:
      return "global store";
    case StepKind::copy:
      return "cp.async";
    case StepKind::commit_copies:
      return "commit of copies";
    case StepKind::wait_copies:
      return "wait for copies";
    case StepKind::bulk_load:
      return "TMA load";
    case StepKind::bulk_store:
      return "TMA store";
    case StepKind::commit_stores:
      return "commit of stores";
    case StepKind::wait_stores:
      return "wait for stores";
    case StepKind::barrier_arrive:
    case StepKind::barrier_copied:
      return "arrival";
    case StepKind::barrier_wait:
      return "wait at a barrier";
    case StepKind::block_sync:
      return "block barrier";
    case StepKind::block_arrive:
      return "arrival at a block barrier";
    case StepKind::cluster_arrive:
      return "arrival at the cluster's barrier";
    case StepKind::cluster_wait:
      return "wait at the cluster's barrier";
    case StepKind::grid_sync:
      return "grid barrier";
    case StepKind::mma:
      return "mma";
    case StepKind::wgmma:
      return "wgmma";
    case StepKind::commit_wgmma:
      return "commit of wgmma";
    case StepKind::wait_wgmma:
      return "wait for wgmma";
    case StepKind::exchange:
      return "exchange in the warp";
    case StepKind::compute:
      return "arithmetic";
  }
  return "";
}

void StepLog::add(Step step) {
  products_ += static_cast<double>(step.m) * static_cast<double>(step.n) * static_cast<double>(step.k);
  steps_.push_back(std::move(step));
}

bool StepLog::is_full() {
  is_cut_ = is_cut_ || static_cast<int64_t>(steps_.size()) >= most_steps_ || products_ >= most_products_;
  return is_cut_;
}

void StepLog::add_operations(int warp, const std::vector<OperationCounter>& table, const uint64_t* counts,
                             size_t lanes) {
  std::vector<uint64_t>& counted = counted_[warp];
  counted.resize(table.size() * lanes);
  // Of each line a step, in the order in which the text has them.
  std::map<SourceLine, std::pair<targets::c::Operations, uint32_t>> done;
  for (size_t number = 0; number < table.size(); ++number) {
    uint64_t most = 0;
    uint32_t mask = 0;
    for (size_t lane = 0, at = number; lane < lanes; ++lane, at += table.size()) {
      most = std::max(most, counts[at] - counted[at]);
      mask |= uint32_t{counts[at] != counted[at]} << lane;
      counted[at] = counts[at];
    }
    if (most == 0) continue;
    for (const auto& [line, operations] : table[number]) {
      done[line].first.add(operations, static_cast<int64_t>(most));
      done[line].second |= mask;
    }
  }
  for (const auto& [line, part] : done) {
    Step step{StepKind::compute, warp, std::popcount(part.second), part.second, line};
    step.operations = part.first;
    add(std::move(step));
  }
}

}  // namespace tilepilot::emulator
