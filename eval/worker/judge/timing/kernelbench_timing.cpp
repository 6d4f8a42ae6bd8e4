#include "eval/worker/judge/timing/kernelbench_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "eval/process/candidate_answer.h"
#include "eval/worker/kernelbench_trials.h"

namespace tilepilot::eval {
namespace {

constexpr int64_t kComparedBytes = int64_t{256} << 20;  // of results that wait to be compared
constexpr int64_t kMostCompared = 8;
constexpr double kAlike = 1.5;  // between the speed-ups of the two protocols
const std::string kNotTimed = "not timed as KernelBench's script does: ";
constexpr double kLimitShare = 0.5;  // of the time limit: what all calls may take

// One set of inputs for all calls, and secret calls whose results stay.
Result<PlannedBatch> plan(const KernelBenchSides& sides) {
  PlannedBatch planned = TRY(sides.source.next(1, 0));
  planned.batch.calls.assign(kKernelBenchCalls, Call(planned.batch.calls[0]));
  planned.traps.assign(kKernelBenchCalls, static_cast<bool>(planned.traps[0]));
  planned.batch.waits = sides.side.device().is_cpu();
  // Calls that change their inputs find another set each time.
  if (sides.single || !sides.source.mutated().empty()) {
    planned.batch.kept = {0};
    return planned;
  }
  const int64_t fit =
      std::clamp<int64_t>(kComparedBytes / std::max<int64_t>(sides.source.bytes(), 1), 1, kMostCompared);
  std::vector<int64_t>& kept = planned.batch.kept;
  while (static_cast<int64_t>(kept.size()) < fit) {
    const auto call = static_cast<int64_t>(sides.source.random() % kKernelBenchCalls);
    if (std::find(kept.begin(), kept.end(), call) == kept.end()) kept.push_back(call);
  }
  return planned;
}

void compare(const KernelBenchSides& sides, const PlannedBatch& planned, const EagerBatch& eager,
             Contestant& contestant) {
  const auto& kept = planned.batch.kept;
  for (size_t i = 0; i < (sides.source.mutated().empty() ? kept.size() : 0); ++i) {
    const auto call = static_cast<size_t>(kept[i]);
    auto answer = contestant.channel.fetch(call);
    if (!answer) {
      contestant.failure = contestant.channel.link().failure();
      return;
    }
    contestant.failure =
        sides.check.check({planned, eager, call, sides.eager.weights()}, contestant.channel.link(), *answer);
    if (contestant.failure) return;
  }
  if (!contestant.channel.rest()) contestant.failure = contestant.channel.link().failure();
}

void time_contestant(const KernelBenchSides& sides, const PlannedBatch& planned, const EagerBatch& eager,
                     Contestant& contestant) {
  CallChannel& channel = contestant.channel;
  channel.link().set_limit(sides.time_limit_s);
  const std::vector<CallChannel::Base> bases = fresh_bases(planned, sides.source);
  std::optional<RanBatch> ran;
  if (channel.prepare(planned.batch, bases)) ran = channel.go();
  if (!ran) {
    const Verdict& failure = channel.link().failure();
    // More results are alive at once here than in our own batches: a program need not have the memory for that.
    if (failure.outcome == Outcome::out_of_memory)
      contestant.verdict.notes.push_back(kNotTimed + failure.detail);
    else
      contestant.failure = failure;
    return;
  }
  if (ran->trials.size() != kKernelBenchTrials) {
    contestant.failure = protocol_failure("its trials are not as many as were asked for");
    return;
  }
  compare(sides, planned, eager, contestant);
  if (contestant.failure) return;
  Verdict& verdict = contestant.verdict;
  verdict.kernelbench_timing = KernelBenchTiming{kernelbench_times(eager.trials), kernelbench_times(ran->trials)};
  const std::string remark = kernelbench_remark(*verdict.kernelbench_timing, verdict.speedup());
  if (!remark.empty()) verdict.notes.push_back(remark);
}

}  // namespace

void time_as_kernelbench(const KernelBenchSides& sides, std::vector<Contestant>& contestants) {
  std::vector<Contestant*> timed;
  for (Contestant& contestant : contestants) {
    contestant.verdict.kernelbench_timing.reset();
    if (contestant.failure) continue;
    const std::string obstacle = kernelbench_obstacle(contestant.verdict, sides.time_limit_s);
    if (obstacle.empty())
      timed.push_back(&contestant);
    else
      contestant.verdict.notes.push_back(obstacle);
  }
  if (timed.empty()) return;
  const auto give_up = [&](const Diagnostic& error) {
    for (Contestant* contestant : timed) contestant->verdict.notes.push_back(kNotTimed + error.message);
  };
  const auto planned = plan(sides);
  if (!planned.ok()) return give_up(planned.error());
  auto eager = sides.eager.run_as_kernelbench(planned->batch, sides.source);
  if (!eager.ok()) return give_up(eager.error());
  for (Contestant* contestant : timed) time_contestant(sides, *planned, *eager, *contestant);
  sides.eager.drop(*std::move(eager));
}

KernelBenchTimes kernelbench_times(const std::vector<double>& seconds) {
  const auto count = static_cast<double>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count;
  double squares = 0;
  for (const double each : seconds) squares += (each - mean) * (each - mean);
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return {mean * 1e3, std::sqrt(squares / count) * 1e3, *least * 1e3, *most * 1e3, static_cast<int>(seconds.size())};
}

std::string kernelbench_obstacle(const Verdict& timed, double time_limit_s) {
  if (!timed.candidate || !timed.eager) return "";
  const double call = std::max(timed.candidate->median_us, timed.eager->median_us) * 1e-6;
  const double seconds = static_cast<double>(kKernelBenchCalls) * call;
  if (seconds <= kLimitShare * time_limit_s) return "";
  return fmt::format("{}its {} calls would take {:.0f} seconds, more than half of the time limit", kNotTimed,
                     kKernelBenchCalls, seconds);
}

std::string kernelbench_remark(const KernelBenchTiming& timing, double speedup) {
  if (speedup <= 0 || timing.speedup() <= kAlike * speedup) return "";
  return fmt::format(
      "KernelBench's timing, which gives all calls the same inputs, finds a speed-up of {:.2f}x; with fresh inputs it "
      "is {:.2f}x",
      timing.speedup(), speedup);
}

}  // namespace tilepilot::eval
