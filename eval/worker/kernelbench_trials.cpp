#include "eval/worker/kernelbench_trials.h"

#include "eval/host/edge.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {

Result<std::vector<double>> run_kernelbench_trials(const KernelBenchTrials& trials) {
  for (size_t i = 0; i < kKernelBenchWarmUps; ++i) TRY(trials.call(i));
  TRY(guarded("", {}, trials.warmed_up));
  std::vector<double> seconds;
  for (size_t i = kKernelBenchWarmUps; i < kKernelBenchCalls; ++i) {
    TRY(guarded("", {}, [&] { trials.stopwatch.start(); }));
    TRY(trials.call(i));
    TRY(guarded("", {}, [&] { trials.stopwatch.stop(); }));
    const double passed = trials.stopwatch.read();
    if (i >= kKernelBenchWarmUps + kKernelBenchDiscarded) seconds.push_back(passed);
  }
  return seconds;
}

void settle_gpu(c10::Device device) {
  if (device.is_cpu()) return;
  synchronize_gpu();
  release_unused_gpu_memory();
}

}  // namespace tilepilot::eval
