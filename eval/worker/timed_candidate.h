// The candidate's side of timing: holds its input sets, times calls, and sees that repeated inputs cause the work again
// that they caused at first.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/torch/stopwatch.h"
#include "eval/worker/candidate_program.h"
#include "eval/worker/rotating_inputs.h"
#include "eval/worker/work_census.h"

namespace tilepilot::eval {

// What the checked calls tell the timed ones.
struct SeenCalls {
  std::set<std::string> inputs;  // digests
  std::optional<int64_t> least_launches;

  void add_launches(int64_t launches) { least_launches = std::min(least_launches.value_or(launches), launches); }
};
// Of several tensors together.
std::string digest_of_all(const std::vector<at::Tensor>& tensors);

struct TimingSetup {
  GraphArgument arguments;
  std::vector<std::vector<at::Tensor>> contents;
  bool mutates = false;  // the model changes its inputs: the same set is other inputs at the next call
};

// A call whose answer the judge looks at.
struct CheckedCall {
  ForwardResult result;
  const std::vector<at::Tensor>& inputs;
};

struct TimedCalls {
  int64_t calls = 1;
  int64_t lead = 0;           // calls before them, outside the time: threads wake, caches fill
  bool restore = false;       // the inputs first
  bool watch_kernels = true;  // know how long they run, though on a GPU waiting for them takes time
  // After `before` of them, outside the time: a checked call on `content`.
  std::optional<size_t> content = std::nullopt;
  int64_t before = 0;
  uint64_t seed = 0;
};

struct TimedAnswer {
  double seconds = 0, kernel_seconds = 0;  // the latter only if kernels are watched
  std::optional<CheckedCall> checked;
  bool earlier_changed = false;  // the answer of the last turn, or of the checked call
  std::string complaint;         // what was not done again; empty: nothing
};

class TimedCandidate {
 public:
  TimedCandidate(CandidateProgram& program, SeenCalls seen, TimingSetup setup);

  // Calls each set once, to see what work it takes.
  Status begin();
  // `content` becomes what `tensors` hold, and contents move round between the sets. The call on it is the first.
  Result<CheckedCall> turn(size_t content, const std::vector<at::Tensor>& tensors, uint64_t seed);
  Result<TimedAnswer> time(const TimedCalls& calls);

 private:
  using Kept = std::vector<std::pair<at::Tensor, std::string>>;  // outputs and their digests

  Result<ForwardResult> first_call(size_t content);
  Kept kept(const ForwardResult& result) const;  // none where later calls may change them
  static bool changed(const Kept& outputs);
  Result<CheckedCall> repeated_call(const TimedCalls& calls, TimedAnswer& answer);
  Result<double> run(int64_t begin, int64_t end);

  CandidateProgram& program_;
  SeenCalls seen_;
  TimingSetup setup_;
  RotatingInputs inputs_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::vector<stage::CallArgs> calls_;     // by set
  std::vector<std::optional<Work>> work_;  // by content: of its first call; none: a checked call had it before
  Kept kept_;                              // of the last turn
};

}  // namespace tilepilot::eval
