#include "eval/worker/timed_candidate.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/host/edge.h"
#include "eval/worker/digest.h"

namespace tilepilot::eval {

std::string digest_of_all(const std::vector<at::Tensor>& tensors) {
  std::string digests;
  for (auto& tensor : tensors) digests += digest_of(tensor) + " ";
  return digests;
}

TimedCandidate::TimedCandidate(CandidateProgram& program, SeenCalls seen, TimingSetup setup)
    : program_(program),
      seen_(std::move(seen)),
      setup_(std::move(setup)),
      inputs_(std::move(setup_.contents), program.device()),
      stopwatch_(stopwatch_for(program.device())) {
  for (size_t i = 0; i < inputs_.size(); ++i) calls_.push_back(program_.arguments(setup_.arguments, inputs_[i]));
  work_.resize(inputs_.size());
}

Status TimedCandidate::begin() {
  for (size_t content = 0; content < inputs_.size(); ++content) TRY(first_call(content));
  return {};
}

Result<ForwardResult> TimedCandidate::first_call(size_t content) {
  size_t set = inputs_.holder_of(content);
  bool seen = !seen_.inputs.insert(digest_of_all(inputs_[set])).second;
  int64_t launches = program_.log().launches;
  WorkCensus census(program_.log());
  auto result = program_.forward(calls_[set]);
  Work work = census.take();
  work_[content].reset();
  // An answer that may be remembered from an earlier call says nothing of the work.
  if (!seen && !setup_.mutates && result.ok()) work_[content] = std::move(work);
  if (!seen) seen_.add_launches(program_.log().launches - launches);
  return result;
}

Result<CheckedCall> TimedCandidate::turn(size_t content, const std::vector<at::Tensor>& tensors, uint64_t seed) {
  inputs_.replace(content, tensors);
  inputs_.rotate();
  program_.seed(seed);
  auto result = TRY(first_call(content));
  kept_ = kept(result);
  return CheckedCall{std::move(result), inputs_[inputs_.holder_of(content)]};
}

TimedCandidate::Kept TimedCandidate::kept(const ForwardResult& result) const {
  Kept outputs;
  if (setup_.mutates) return outputs;
  for (auto& tensor : result.tensors) outputs.emplace_back(tensor, digest_of(tensor));
  return outputs;
}

bool TimedCandidate::changed(const Kept& outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const auto& one) { return digest_of(one.first) != one.second; });
}

Result<double> TimedCandidate::run(int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    TRY(guarded("", {}, [&] { stopwatch_->start(); }));
    TRY(program_.call(calls_[static_cast<size_t>(i) % calls_.size()]));
    TRY(guarded("", {}, [&] { stopwatch_->stop(); }));
  }
  return stopwatch_->read();
}

Result<CheckedCall> TimedCandidate::repeated_call(const TimedCalls& calls, TimedAnswer& answer) {
  size_t set = inputs_.holder_of(*calls.content);
  program_.seed(calls.seed);
  WorkCensus census(program_.log());
  auto result = program_.forward(calls_[set]);
  Work work = census.take();
  auto checked = CheckedCall{TRY(std::move(result)), inputs_[set]};
  auto& first = work_[*calls.content];
  std::string missing = first ? missing_work(*first, work) : "";
  if (!missing.empty())
    answer.complaint = fmt::format("one did without work that its inputs took at first: {}", missing);
  answer.earlier_changed = changed(kept_);
  return checked;
}

Result<TimedAnswer> TimedCandidate::time(const TimedCalls& calls) {
  at::NoGradGuard no_grad;
  if (calls.restore) inputs_.restore();
  auto& log = program_.log();
  log.waits = calls.watch_kernels;
  TRY(run(0, calls.lead));
  int64_t launches = log.launches, aside = 0;
  double kernel_seconds = log.seconds, seconds_aside = 0;
  TimedAnswer answer;
  int64_t end = calls.lead + calls.calls;
  int64_t before = calls.content ? std::min(calls.lead + calls.before, end) : end;
  answer.seconds = TRY(run(calls.lead, before));
  if (calls.content) {
    aside = log.launches;
    seconds_aside = log.seconds;
    answer.checked.emplace(TRY(repeated_call(calls, answer)));
    aside = log.launches - aside;
    seconds_aside = log.seconds - seconds_aside;
    // The calls before it may have ended with the inputs of the last turn, and overwritten its answer with the same.
    const Kept checked = kept(answer.checked->result);
    answer.seconds += TRY(run(before, end));
    answer.earlier_changed = answer.earlier_changed || changed(checked);
  }
  answer.kernel_seconds = log.seconds - kernel_seconds - seconds_aside;
  log.waits = true;
  int64_t launched = log.launches - launches - aside, wanted = calls.calls * seen_.least_launches.value_or(0);
  if (launched < wanted) {
    answer.complaint = fmt::format("{} launched {} kernels instead of at least {}", calls.calls, launched, wanted);
  }
  return answer;
}

}  // namespace tilepilot::eval
