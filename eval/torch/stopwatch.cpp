#include "eval/torch/stopwatch.h"

#include <ATen/Functions.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "eval/torch/gpu.h"
#include "eval/wire.h"

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

class GpuStopwatch final : public Stopwatch {
 public:
  explicit GpuStopwatch(c10::Device device)
      : guard_(device.type()), flushed_(at::empty({kFlushedBytes}, at::dtype(at::kByte).device(device))) {}

  void start() override {
    flushed_.zero_();
    begin_.record(guard_.getStream(guard_.getDevice()));
  }

  void stop() override {
    end_.record(guard_.getStream(guard_.getDevice()));
    end_.synchronize();
    const double stopped = monotonic_seconds();
    synchronize_gpu();
    const double overtime = monotonic_seconds() - stopped;
    seconds_ += begin_.elapsedTime(end_) * 1e-3 + (overtime > kIdleAnswer ? overtime : 0);
  }

 private:
  c10::impl::VirtualGuardImpl guard_;
  at::Tensor flushed_;
  c10::Event begin_{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
  c10::Event end_{c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT};
};

}  // namespace

std::unique_ptr<Stopwatch> stopwatch_for(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<Clock>();
  return std::make_unique<GpuStopwatch>(device);
}

}  // namespace tilepilot::eval
