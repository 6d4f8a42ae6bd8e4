#include "eval/host/device_times.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <utility>

#include "eval/host/edge.h"

namespace tilepilot::eval {
namespace {

using torch::profiler::impl::ActivityType;

torch::profiler::impl::ProfilerConfig kineto_config() {
  return torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO);
}

std::vector<DeviceTime> times_in(const torch::autograd::profiler::ProfilerResult& result) {
  std::vector<std::pair<uint64_t, DeviceTime>> found;
  for (const auto& event : result.events())
    if (event.deviceType() == c10::DeviceType::CUDA)
      found.push_back({event.startNs(), {event.name(), static_cast<double>(event.durationNs()) * 1e-9}});
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<DeviceTime> times;
  for (auto& [begin, time] : found) times.push_back(std::move(time));
  return times;
}

}  // namespace

Result<std::vector<DeviceTime>> device_times(const std::function<Status()>& work) {
  namespace profiler = torch::autograd::profiler;
  const std::set<ActivityType> activities = {ActivityType::CPU, ActivityType::CUDA};
  TRY(guarded("Kineto", {}, [&] {
    profiler::prepareProfiler(kineto_config(), activities);
    profiler::enableProfiler(kineto_config(), activities);
  }));
  Status worked = work();
  auto times = guarded("Kineto", {}, [] { return times_in(*profiler::disableProfiler()); });
  TRY(std::move(worked));
  return times;
}

}  // namespace tilepilot::eval
