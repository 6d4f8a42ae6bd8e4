// Eager's side of a batch of calls (call_batch.h): the same inputs in the same order, in the judge's process.
#pragma once

#include <optional>

#include "eval/torch/stopwatch.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/call_source.h"
#include "eval/worker/profile/part_recorder.h"

namespace tilepilot::eval {

struct EagerBatch {
  double seconds = 0;                                    // of the calls after the lead
  std::vector<std::vector<at::Tensor>> outputs, inputs;  // by call; the inputs after it
  std::vector<double> trials;                            // of a batch that KernelBench's rules time: each that counts
};

class EagerCalls {
 public:
  explicit EagerCalls(const ReferenceSide& side);
  ~EagerCalls();
  EagerCalls(const EagerCalls&) = delete;

  void use_weights(int set);
  int weights() const { return set_; }
  Result<EagerBatch> run(const Batch& batch, const CallSource& source);
  // A batch that KernelBench's rules time. @pre !batch.kept.empty()
  Result<EagerBatch> run_as_kernelbench(const Batch& batch, const CallSource& source);
  // A batch of one call, captured as a CUDA graph: the seconds of a replay. @pre batch.graph, on a GPU
  Result<EagerBatch> run_as_graph(const Batch& batch, const CallSource& source);
  // Watched part by part.
  Status run_profiled(const Batch& batch, const CallSource& source, PartRecorder& recorder);
  // Its memory waits for the next batch, as the candidate's does.
  void drop(EagerBatch batch);
  // What calls have made of the model's state since use_weights().
  const State& state() const { return state_; }
  // Outputs depend on what earlier calls left in the model's buffers.
  Result<bool> remembers();

 private:
  const ReferenceSide& side_;
  std::unique_ptr<Stopwatch> stopwatch_;
  std::optional<DeviceMemory> device_memory_;  // on a GPU: as in the candidate's process
  State state_;
  int set_ = -1;
};

}  // namespace tilepilot::eval
