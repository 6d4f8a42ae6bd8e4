#include "compiler/emulator/order/cluster_barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilepilot::emulator {

using emulated::cluster_action;

void ClusterBarrier::start_cluster() {
  threads_.assign(threads_.size(), {});
  arrived_ = gone_ = 0;
  phase_ = 0;
  all_sync_ = true;
}

bool ClusterBarrier::arrive(cluster_action action, const Moment& now) {
  Thread& self = threads_[now.thread];
  if (self.arrived) {
    if (reporter_.is_new(DefectKind::barrier_misuse, self.at, now))
      reporter_.add(
          DefectKind::barrier_misuse, self.at, now,
          fmt::format("{} arrives at the barrier of the cluster twice, and has not waited since it arrived at {}",
                      reporter_.thread(now), reporter_.place(self.at.site)));
    return false;
  }
  self = {phase_, true, false, now};
  all_sync_ = all_sync_ && action == cluster_action::sync;
  if (action != cluster_action::arrive_relaxed) clocks_.release(now.thread, now_);
  ++arrived_;
  complete_if_due();
  return true;
}

bool ClusterBarrier::end(int thread) {
  Thread& self = threads_[static_cast<size_t>(thread)];
  self.gone = true;
  const bool counts = self.arrived && self.phase == phase_;
  if (!counts) ++gone_;
  return complete_if_due();
}

bool ClusterBarrier::complete_if_due() {
  if (arrived_ == 0 || arrived_ + gone_ < threads_.size()) return false;
  arrived_ = 0;
  ++phase_;
  completed_ = now_;
  const auto gone = std::count_if(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.gone; });
  gone_ = static_cast<size_t>(gone);
  // A new epoch would order what threads did that have ended.
  if (std::exchange(all_sync_, true) && gone_ == 0) clocks_.start_epoch();
  return true;
}

bool ClusterBarrier::may_wait(const Moment& now) {
  if (threads_[now.thread].arrived) return true;
  if (reporter_.is_new(DefectKind::barrier_misuse, now, now))
    reporter_.add(
        DefectKind::barrier_misuse, now, now,
        fmt::format("{} waits at the barrier of the cluster, and has not arrived there", reporter_.thread(now)));
  return false;
}

void ClusterBarrier::pass(int thread) {
  threads_[static_cast<size_t>(thread)].arrived = false;
  clocks_.acquire(thread, completed_);
}

std::string ClusterBarrier::describe() const {
  return fmt::format(", where {} of {} threads have come", arrived_, threads_.size() - gone_);
}

}  // namespace tilepilot::emulator
