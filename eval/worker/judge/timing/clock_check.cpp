#include "eval/worker/judge/timing/clock_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::eval {
namespace {

constexpr double kShare = 0.5;   // of what the judge saw must be claimed at least, in half of the samples
constexpr double kSlack = 2e-3;  // seconds of a sample that scheduling may add
// An answer may lie there while the judge gets no processor: the processors' time has to tell as much as the judge's
// clock.
constexpr double kSeenShare = 1.25;  // times the threads may the processors' time of a sample exceed its claim
constexpr double kBusyShare = 1.5;   // and that of all samples
constexpr double kBusySlack = 20e-3;

}  // namespace

std::string clock_complaint(const std::vector<ClockView>& samples, int threads) {
  if (samples.empty()) return "";
  double claimed = 0, busy = 0, after = 0;
  size_t short_claims = 0;
  for (const ClockView& sample : samples) {
    claimed += sample.claimed;
    busy += sample.busy;
    after += sample.after;
    short_claims += sample.claimed < kShare * (sample.judged - kSlack) &&
                    sample.busy > kSeenShare * std::max(threads, 1) * sample.claimed + kSlack;
  }
  if (2 * short_claims > samples.size())
    return fmt::format("it claims to take {:.3g} ms for what the judge waited longer than twice as long",
                       claimed * 1e3 / static_cast<double>(samples.size()));
  if (busy > kBusyShare * std::max(threads, 1) * claimed + kBusySlack)
    return fmt::format("it claims {:.3g} ms for samples that took {:.3g} ms of the processors' time", claimed * 1e3,
                       busy * 1e3);
  if (after > kShare * busy + kBusySlack)
    return fmt::format("it went on computing for {:.3g} ms after it had answered", after * 1e3);
  return "";
}

}  // namespace tilepilot::eval
