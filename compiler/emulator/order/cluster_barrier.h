// The barrier of a cluster: threads arrive at it, and later wait until all others have (PTX ISA, "barrier.cluster").
// Who has waited knows what others did before they arrived; what they do between the two is ordered by nothing. Nobody
// waits for threads that have ended, and nobody knows what these did.
#pragma once

#include <string>
#include <vector>

#include "compiler/emulator/order/clocks.h"
#include "compiler/emulator/prelude/interface.h.in"
#include "compiler/emulator/report/reporter.h"

namespace tilepilot::emulator {

// What threads that wait here wait for, among places of hardware barriers.
constexpr int64_t kClusterEvent = -1;

class ClusterBarrier {
 public:
  // `threads`: of the cluster.
  ClusterBarrier(int64_t threads, Clocks& clocks, Reporter& reporter)
      : clocks_(clocks), reporter_(reporter), threads_(static_cast<size_t>(threads)) {}

  void start_cluster();
  // By the thread of `now`; an `arrive` that is part of a `sync` waits at once. False: that is misuse, and told.
  bool arrive(emulated::cluster_action action, const Moment& now);
  // The thread has ended. True: others waited for it alone, and go on.
  bool end(int thread);
  // Before it waits. False: it has not arrived, which is told.
  bool may_wait(const Moment& now);
  // Which is under way, from 0 on; and the last that the thread arrived at.
  int64_t phase() const { return phase_; }
  int64_t phase_of(int thread) const { return threads_[static_cast<size_t>(thread)].phase; }
  // Whether all have arrived at the phase that the thread has arrived at.
  bool has_passed(int thread) const { return phase_ > threads_[static_cast<size_t>(thread)].phase; }
  // The thread goes on.
  void pass(int thread);
  // ", where 32 of 64 threads have come"
  std::string describe() const;

 private:
  struct Thread {
    int64_t phase = -1;  // the last that it arrived at
    bool arrived = false;
    bool gone = false;  // it has ended
    Moment at;
  };

  Clocks& clocks_;
  Reporter& reporter_;
  std::vector<Thread> threads_;
  size_t arrived_ = 0;  // in this phase
  size_t gone_ = 0;     // have ended, and not arrived in this phase
  int64_t phase_ = 0;
  bool all_sync_ = true;  // nobody does anything between its arrival and its wait
  Knowledge now_, completed_;

  bool complete_if_due();
};

}  // namespace tilepilot::emulator
