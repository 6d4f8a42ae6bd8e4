// What a GPU said of itself while it was timed (GpuState, judge.h), from samples before, between and after the batches.
#pragma once

#include "compiler/runtime/cuda/gpu_monitor.h"
#include "eval/judge.h"

namespace tilepilot::eval {

class GpuLog {
 public:
  // Null: nothing is read.
  explicit GpuLog(runtime::cuda::GpuMonitor* monitor) : monitor_(monitor) {}

  void read();
  // nullopt: nothing was read.
  std::optional<GpuState> state() const;
  // What a reader of the times should know: clocks that fell, power or heat that held them down.
  std::vector<std::string> notes() const;

 private:
  // Whether the clocks of the sample are those of work.
  static bool works(const runtime::cuda::GpuSample& sample);

  runtime::cuda::GpuMonitor* monitor_;
  std::vector<runtime::cuda::GpuSample> samples_;
};

}  // namespace tilepilot::eval
