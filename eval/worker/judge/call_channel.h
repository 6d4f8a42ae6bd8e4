// The judge's side of a batch of calls (call_batch.h) to one candidate, and the judge's own view of how long it took.
#pragma once

#include "eval/worker/call_batch.h"
#include "eval/worker/judge/call_source.h"
#include "eval/worker/judge/candidate_link.h"
#include "eval/worker/judge/timing/clock_check.h"
#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

struct RanBatch {
  double claimed = 0, kernel_seconds = 0;  // by the candidate
  std::vector<double> trials = {};         // by the candidate, of a batch that KernelBench's rules time
  nlohmann::json profile = {};             // of profiled calls, as the candidate tells it; null elsewhere
  double judged = 0;                       // from the request to the answer
  double queued = 0;                       // of that: there was no processor for it
  double busy = 0;                         // the processors' time that its process took meanwhile
};

class CallChannel {
 public:
  CallChannel(CandidateLink& link, const ReferenceSide& side) : link_(link), side_(side) {}

  struct Base {
    int64_t number;
    std::vector<at::Tensor> tensors;
  };
  // `numbers`: as Trial has it. False, or nullopt below: see link().failure().
  bool prepare(const Batch& batch, const std::vector<Base>& bases, int numbers = 0);
  std::optional<RanBatch> go();
  // The judge's view of an empty batch.
  std::optional<double> round_trip();
  // The processors' time that the process took since `go` answered.
  double busy_since() const;
  std::optional<Message> fetch(size_t call, const std::vector<size_t>& return_inputs = {});
  // With the buffers of these names, and whether other weights have changed.
  std::optional<Message> fetch(size_t call, const std::vector<size_t>& return_inputs,
                               const std::vector<std::string>* return_state);
  // The batch is over: its memory is for others.
  bool rest();
  CandidateLink& link() { return link_; }

 private:
  CandidateLink& link_;
  const ReferenceSide& side_;
  double busy_ = 0;  // when `go` answered
};

// The bases that candidates do not have, for `prepare`.
std::vector<CallChannel::Base> fresh_bases(const PlannedBatch& planned, const CallSource& source);

}  // namespace tilepilot::eval
