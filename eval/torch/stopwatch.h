// Measures calls where they run: on the processor by the clock; on a GPU between two of its own events, with its caches
// flushed before each call. Work that a call leaves behind on other streams of the GPU counts as its own.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <utility>

namespace tilepilot::eval {

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;
  // May throw what LibTorch throws if the GPU failed.
  virtual void stop() = 0;
  // Seconds between starts and stops since the last reading.
  double read() { return std::exchange(seconds_, 0); }

 protected:
  double seconds_ = 0;
};

std::unique_ptr<Stopwatch> stopwatch_for(c10::Device device);
// As KernelBench's script measures a call on a GPU: the work of the current stream alone.
std::unique_ptr<Stopwatch> kernelbench_stopwatch_for(c10::Device device);

}  // namespace tilepilot::eval
