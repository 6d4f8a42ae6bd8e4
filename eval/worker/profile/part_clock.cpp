#include "eval/worker/profile/part_clock.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "eval/process/wire.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

class HostMarks final : public PartClock {
 public:
  const char* method() const override { return "clock"; }
  void begin(double) override { marks_.clear(); }
  void mark() override { marks_.push_back(monotonic_seconds()); }
  std::vector<double> read() override {
    std::vector<double> seconds;
    for (const double mark : marks_) seconds.push_back(mark - marks_.front());
    return seconds;
  }

 private:
  std::vector<double> marks_;
};

constexpr int64_t kWrittenBytes = int64_t{256} << 20;  // more than any cache holds
constexpr double kWriteSeconds = 50e-6;                // at least, on any GPU of today
constexpr int kMostWrites = 400;

class EventMarks final : public PartClock {
 public:
  explicit EventMarks(c10::Device device)
      : guard_(device.type()), written_(at::empty({kWrittenBytes}, at::dtype(at::kByte).device(device))) {}

  const char* method() const override { return "events"; }

  void begin(double host_seconds) override {
    const at::DisableRecordFunctionGuard unobserved;
    used_ = 0;
    synchronize_gpu();
    const int writes = std::clamp(static_cast<int>(std::ceil(1.5 * host_seconds / kWriteSeconds)), 1, kMostWrites);
    for (int i = 0; i < writes; ++i) written_.zero_();
  }

  void mark() override {
    if (used_ == events_.size()) events_.emplace_back(c10::DeviceType::CUDA, c10::EventFlag::BACKEND_DEFAULT);
    events_[used_++].record(guard_.getStream(guard_.getDevice()));
  }

  std::vector<double> read() override {
    synchronize_gpu();
    std::vector<double> seconds;
    for (size_t i = 0; i < used_; ++i)
      seconds.push_back(i == 0 ? 0 : static_cast<double>(events_[0].elapsedTime(events_[i])) * 1e-3);
    return seconds;
  }

 private:
  c10::impl::VirtualGuardImpl guard_;
  at::Tensor written_;
  std::deque<c10::Event> events_;  // kept for the calls to come
  size_t used_ = 0;
};

}  // namespace

std::unique_ptr<PartClock> part_clock_for(c10::Device device) {
  if (device.is_cpu()) return std::make_unique<HostMarks>();
  return std::make_unique<EventMarks>(device);
}

}  // namespace tilepilot::eval
