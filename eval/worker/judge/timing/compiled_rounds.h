// The sides under `torch.compile` in a session of rounds: what they took, and whether what they return is right.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "eval/worker/judge/call_check.h"
#include "eval/worker/judge/timing/compiled_side.h"

namespace tilepilot::eval {

using CompiledSides = std::vector<std::unique_ptr<CompiledSide>>;

class CompiledRounds {
 public:
  // `sides`: nullptr if there are none. Those that fell out earlier stay out.
  CompiledRounds(const CompiledSides* sides, const ReferenceSide& side, CallSource& source, const CallCheck& check);

  size_t count() const { return sides_ ? sides_->size() : 0; }
  void get_ready(int weights, const CompiledSide::Limits& limits);
  void load_weights(int set, bool anew);
  // Seconds of the batch's calls after the lead; nullopt: the side has fallen out.
  std::optional<double> run(size_t which, const PlannedBatch& planned, bool counts, const std::function<void()>& after);
  // One call of each that has run the batch, drawn now. A side that is wrong falls out.
  void check(const PlannedBatch& planned, const EagerBatch& eager, int weights);
  // `candidate`: seconds of a call by round, the same rounds.
  void summarize(Verdict& verdict, const std::vector<double>& candidate) const;

 private:
  struct Samples {
    std::vector<double> seconds, round_trips;  // of batches
    std::vector<size_t> calls;
    bool ran = false;  // the batch
  };
  std::vector<double> seconds_of_calls(const Samples& samples) const;

  const CompiledSides* sides_;
  const ReferenceSide& side_;
  CallSource& source_;
  const CallCheck& check_;
  std::vector<Samples> samples_;
};

}  // namespace tilepilot::eval
