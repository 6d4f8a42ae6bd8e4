#include "eval/torch/stopwatch.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "eval/process/wire.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

class Clock final : public Stopwatch {
 public:
  void start() override { begin_ = monotonic_seconds(); }
  void stop() override { seconds_ += monotonic_seconds() - begin_; }

 private:
  double begin_ = 0;
};

// While the GPU writes so much, which is several times its cache, the host gets ahead of it: the time between the
// events is then the GPU's, unless a call keeps the host busy for longer.
constexpr int64_t kFlushedBytes = int64_t{256} << 20;
// What asking an idle GPU whether it has finished may take.
constexpr double kIdleAnswer = 50e-6;

// Two events of the current stream.
class GpuEvents {
 public:
  explicit GpuEvents(c10::Device device) : guard_(device.type()) {}
  void begin() { begin_.record(guard_.getStream(guard_.getDevice())); }
  void end() { end_.record(guard_.getStream(guard_.getDevice())); }
  void wait() { end_.synchronize(); }
  // @pre the GPU has reached both
  double seconds() { return begin_.elapsedTime(end_) * 1e-3; }

 private:
  c10::impl::VirtualGuardImpl guard_;
  c10::Event begin_{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
  c10::Event end_{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
};

class GpuStopwatch final : public Stopwatch {
 public:
  explicit GpuStopwatch(c10::Device device)
      : events_(device), flushed_(at::empty({kFlushedBytes}, at::dtype(at::kByte).device(device))) {}

  void start() override {
    flushed_.zero_();
    events_.begin();
  }

  void stop() override {
    events_.end();
    events_.wait();
    const double stopped = monotonic_seconds();
    synchronize_gpu();
    const double overtime = monotonic_seconds() - stopped;
    seconds_ += events_.seconds() + (overtime > kIdleAnswer ? overtime : 0);
  }

 private:
  GpuEvents events_;
  at::Tensor flushed_;
};

// Overwrites the cache with a tensor made for it each time, as KernelBench does: memory lies then as it does there.
class KernelBenchStopwatch final : public Stopwatch {
 public:
  explicit KernelBenchStopwatch(c10::Device device) : device_(device), events_(device) {}

  void start() override {
    const at::DisableRecordFunctionGuard unobserved;
    synchronize_gpu();
    at::empty({kFlushedBytes / 8}, at::dtype(at::kLong).device(device_)).fill_(1);
    events_.begin();
  }

  void stop() override {
    events_.end();
    synchronize_gpu();
    seconds_ += events_.seconds();
  }

 private:
  c10::Device device_;
  GpuEvents events_;
};

}  // namespace

std::unique_ptr<Stopwatch> stopwatch_for(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<Clock>();
  return std::make_unique<GpuStopwatch>(device);
}

std::unique_ptr<Stopwatch> kernelbench_stopwatch_for(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<Clock>();
  return std::make_unique<KernelBenchStopwatch>(device);
}

}  // namespace tilepilot::eval
