// The candidate's side of a batch of calls (call_batch.h): writes the inputs into fresh memory, runs the calls, and
// keeps what they return until the judge has picked what it wants to see.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/profile/profile_record.h"
#include "eval/torch/stopwatch.h"
#include "eval/worker/call_batch.h"
#include "eval/worker/candidate/candidate_program.h"
#include "eval/worker/candidate/fresh_memory.h"

namespace tilepilot::eval {

// One call as the judge sees it.
struct FetchedCall {
  ForwardResult result;
  std::vector<at::Tensor> inputs;    // after the call
  std::vector<std::string> aliases;  // by tensor of the result: whose memory it shares; empty: nobody's
  bool earlier_changed = false;      // what an earlier call returned is no longer what it was, or has come again
};

struct RanCalls {
  double seconds = 0, kernel_seconds = 0;   // as this process sees them: a hint
  std::vector<double> trials = {};          // of a batch that KernelBench's rules time: each that counts
  std::optional<CallsRecord> profile = {};  // of the profiled calls so far, but the first
};

class CandidateCalls {
 public:
  explicit CandidateCalls(CandidateProgram& program);

  // The structure of forward's arguments, with numbers of tensors.
  void set_arguments(GraphArgument arguments) { arguments_ = std::move(arguments); }
  // From now on base `number` is this; nobody may write to it. One below 0, or larger than kLargeOnGpu there, is for
  // one batch.
  void set_base(int64_t number, std::vector<at::Tensor> tensors) { bases_[number] = std::move(tensors); }
  // @pre the last batch is finished
  Status prepare(Batch batch);
  // Without a batch it does nothing, as fast as it can.
  Result<RanCalls> go();
  // Tensors whose elements are of more than `most_bytes` are not looked at: the judge does not take them.
  Result<FetchedCall> fetch(size_t call, int64_t most_bytes);
  // "input 0" if the tensor shares its memory with that one of the call; empty: with none.
  std::string input_behind(const at::Tensor& tensor, size_t call) const;
  // Of a batch that records; nullptr: it does not.
  const RecordedLaunches* recorded() const { return recorded_ ? &*recorded_ : nullptr; }
  // What the judge has not picked by now it will not see. Memory that is worth it goes back to the GPU.
  void finish();

 private:
  Status run(size_t begin, size_t end, bool timed);
  Result<RanCalls> go_as_kernelbench();
  Result<RanCalls> go_as_graph();
  Result<RanCalls> go_as_profile();
  std::string alias_of(const at::Tensor& tensor, size_t call) const;
  bool is_shared(size_t call, const std::vector<at::Tensor>& tensors);
  bool is_large() const;

  CandidateProgram& program_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::optional<DeviceMemory> device_memory_;
  GraphArgument arguments_;
  std::map<int64_t, std::vector<at::Tensor>> bases_;
  Batch batch_;
  std::optional<RecordedLaunches> recorded_;
  std::vector<std::vector<at::Tensor>> inputs_;
  std::vector<stage::CallArgs> calls_;
  std::vector<stage::Value> results_;
  std::vector<std::pair<at::Tensor, std::string>> kept_, fetched_;  // tensors of the last batch, and their digests
};

}  // namespace tilepilot::eval
