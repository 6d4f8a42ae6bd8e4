#include "eval/worker/judge/timing/compiled_rounds.h"

#include <algorithm>

#include "eval/samples.h"

namespace tilepilot::eval {

CompiledRounds::CompiledRounds(const CompiledSides* sides, const ReferenceSide& side, CallSource& source,
                               const CallCheck& check)
    : sides_(sides), side_(side), source_(source), check_(check), samples_(count()) {}

void CompiledRounds::get_ready(int weights, const CompiledSide::Limits& limits) {
  if (count() == 0) return;
  // Candidates have the bases of all batches: this is none.
  const auto leaves = side_.fresh_inputs(source_.random());
  for (auto& each : *sides_) {
    if (leaves.ok())
      each->get_ready(weights, tensors_of(*leaves), limits);
    else
      each->give_up(leaves.error().message);
  }
}

void CompiledRounds::load_weights(int set, bool anew) {
  for (size_t i = 0; i < count(); ++i) (*sides_)[i]->load_weights(set, anew);
}

std::optional<double> CompiledRounds::run(size_t which, const PlannedBatch& planned, bool counts,
                                          const std::function<void()>& after) {
  const auto ran = (*sides_)[which]->run(planned, source_, after);
  Samples& samples = samples_[which];
  samples.ran = ran.has_value();
  if (!ran) return std::nullopt;
  samples.round_trips.push_back(ran->round_trip);
  if (counts) {
    samples.seconds.push_back(ran->seconds);
    samples.calls.push_back(planned.batch.calls.size() - static_cast<size_t>(planned.batch.lead));
  }
  return ran->seconds;
}

void CompiledRounds::check(const PlannedBatch& planned, const EagerBatch& eager, int weights) {
  for (size_t i = 0; i < count(); ++i) {
    CompiledSide& side = *(*sides_)[i];
    if (!std::exchange(samples_[i].ran, false)) continue;
    // Inductor draws other random numbers than eager does.
    if (!side_.is_random()) {
      const size_t call = source_.random() % planned.batch.calls.size();
      if (const auto outputs = side.fetch(call)) {
        const std::string fault = check_.fault_of({planned, eager, call, weights}, *outputs);
        if (!fault.empty()) side.give_up("it computes something else than eager: " + fault);
      }
    }
    side.rest();
  }
}

std::vector<double> CompiledRounds::seconds_of_calls(const Samples& samples) const {
  const double round_trip = side_.device().is_cpu() ? median(samples.round_trips) : 0;
  std::vector<double> seconds;
  for (size_t i = 0; i < samples.seconds.size(); ++i)
    seconds.push_back(std::max(samples.seconds[i] - round_trip, 1e-8) / static_cast<double>(samples.calls[i]));
  return seconds;
}

void CompiledRounds::summarize(Verdict& verdict, const std::vector<double>& candidate) const {
  verdict.compiled.clear();
  for (size_t i = 0; i < count(); ++i) {
    const CompiledSide& side = *(*sides_)[i];
    if (!side.works()) {
      auto& notes = verdict.notes;
      if (std::find(notes.begin(), notes.end(), side.trouble()) == notes.end()) notes.push_back(side.trouble());
      continue;
    }
    const auto seconds = seconds_of_calls(samples_[i]);
    if (seconds.empty()) continue;
    const auto [low, high] = ratio_interval(seconds, candidate);
    verdict.compiled.push_back(
        {side.mode(), timing_of(seconds), median(seconds) / median(candidate), low, high, side.compile_seconds()});
  }
}

}  // namespace tilepilot::eval
