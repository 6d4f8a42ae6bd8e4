// A call timed as KernelBench's script times one (its method `cuda_event`): warmed up on the same inputs, then, trial
// by trial, on an idle GPU with its cache overwritten, between two events of the current stream.
#pragma once

#include <functional>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "eval/torch/stopwatch.h"

namespace tilepilot::eval {

inline constexpr size_t kKernelBenchWarmUps = 3, kKernelBenchDiscarded = 1, kKernelBenchTrials = 100;
inline constexpr size_t kKernelBenchCalls = kKernelBenchWarmUps + kKernelBenchDiscarded + kKernelBenchTrials;

struct KernelBenchTrials {
  Stopwatch& stopwatch;             // one of kernelbench_stopwatch_for()
  std::function<void()> warmed_up;  // before the first trial: settle_gpu()
  std::function<Status(size_t number)> call;
};
// Seconds of each trial that counts. Errors: those of `call`, and what LibTorch throws.
Result<std::vector<double>> run_kernelbench_trials(const KernelBenchTrials& trials);

// Waits for the GPU and gives the memory that LibTorch keeps back to it; nothing on a processor.
void settle_gpu(c10::Device device);

}  // namespace tilepilot::eval
