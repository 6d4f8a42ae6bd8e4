// Waits at hardware barriers. A wait names a phase by its parity alone: which one a thread means follows from those
// that it has waited for before, and a wrong one shows where the thread does something wrong later.
#include <fmt/format.h>

#include "compiler/emulator/async_proxy.h"

namespace tilepilot::emulator {

int64_t AsyncProxy::wait(PhaseBarrier& barrier, const emulated::shared_place& at, int64_t parity, bool tests) {
  note_wait(barrier, parity, block_.now());
  if (tests && !has_passed(barrier, parity)) {
    block_.let_others_run(true);
    return 0;
  }
  while (!has_passed(barrier, parity)) block_.wait_for(at.at);
  Waiter& self = barrier.waiters[static_cast<size_t>(block_.thread())];
  self.skips |= self.is_late;
  self.is_late = self.waits = false;
  self.phase = barrier.phase - 1;
  learn(barrier, at.at);
  return 1;
}

// It means the phase after its last one, or that again; at first the first one of that parity, or that before all. A
// thread that leaves out phases may mean a later one: that is no defect in itself.
void AsyncProxy::note_wait(PhaseBarrier& barrier, int64_t parity, const Moment& now) {
  if (barrier.waiters.empty()) barrier.waiters.resize(static_cast<size_t>(block_.size()));
  Waiter& self = barrier.waiters[static_cast<size_t>(block_.thread())];
  self.waits = true;
  const bool is_first = self.first.epoch == 0;
  if (is_first) {
    self.first = now;
    self.from_before = barrier.phase <= 1 && (parity & 1) != 0;
  }
  if (self.is_late || self.skips || (self.phase == kNoPhase && !is_first)) return;
  const int64_t meant = is_first ? parity & 1 : self.phase + ((self.phase ^ parity) & 1);
  if (meant == self.phase || meant + 2 > barrier.phase) return;
  self.is_late = true;
  self.late = meant;
  self.ahead = barrier.phase;
  self.at = now;
}

bool AsyncProxy::tell_wrong_phase(const PhaseBarrier& barrier, int64_t at, const Waiter& waiter) {
  const bool from_before = waiter.from_before && barrier.has_copies;
  if (waiter.late == kNoPhase && !from_before) return false;
  const Moment& now = waiter.late != kNoPhase ? waiter.at : waiter.first;
  const std::optional<size_t> effect = reporter_.find_of(now, defects_before_, waiter.waits || from_before);
  if (!effect) return false;
  std::string message =
      waiter.late != kNoPhase
          ? fmt::format("{} waits for phase {} of the barrier at byte {} while that is already in phase {}",
                        reporter_.thread(now), waiter.late, at, waiter.ahead)
          : fmt::format(
                "{} waits for the phase before the first one of the barrier at byte {}, whose copies complete "
                "phases from 0 on",
                reporter_.thread(now), at);
  reporter_.add_cause(*effect, DefectKind::barrier_misuse, now, std::move(message));
  return true;
}

void AsyncProxy::tell_wrong_phases() {
  if (reporter_.count() == defects_before_) return;
  for (const auto& [at, barrier] : barriers_)
    for (const Waiter& waiter : barrier.waiters)
      if (tell_wrong_phase(barrier, at, waiter)) break;  // others most likely do the same
  defects_before_ = reporter_.count();
}

}  // namespace tilepilot::emulator
