#include "eval/process/gpu_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilepilot::eval {

using runtime::cuda::GpuSample;

namespace {

constexpr double kSteady = 0.05;  // the share of its highest clock that a GPU may lose

template <class Value>
void keep_greater(std::optional<Value>& most, const std::optional<Value>& value) {
  if (value && (!most || *value > *most)) most = value;
}
void keep_lesser(std::optional<int>& least, const std::optional<int>& value) {
  if (value && (!least || *value < *least)) least = value;
}

}  // namespace

void GpuLog::read() {
  if (monitor_ != nullptr) samples_.push_back(monitor_->sample());
}

bool GpuLog::works(const GpuSample& sample) { return (sample.reasons & runtime::cuda::kGpuIdle) == 0; }

std::optional<GpuState> GpuLog::state() const {
  if (samples_.empty()) return std::nullopt;
  GpuState state;
  state.samples = static_cast<int>(samples_.size());
  uint64_t reasons = 0;
  const bool any = std::any_of(samples_.begin(), samples_.end(), works);
  for (const GpuSample& sample : samples_) {
    keep_greater(state.power_w, sample.power_w);
    keep_greater(state.temperature, sample.temperature);
    reasons |= sample.reasons & ~uint64_t{runtime::cuda::kGpuIdle};
    if (any && !works(sample)) continue;
    keep_lesser(state.sm_mhz_low, sample.sm_mhz);
    keep_greater(state.sm_mhz_high, sample.sm_mhz);
    keep_lesser(state.mem_mhz, sample.mem_mhz);
  }
  state.throttled = runtime::cuda::names_of_reasons(reasons);
  return state;
}

std::vector<std::string> GpuLog::notes() const {
  std::vector<std::string> notes;
  const auto state = this->state();
  if (!state) return notes;
  if (state->sm_mhz_low && *state->sm_mhz_low < (1 - kSteady) * *state->sm_mhz_high)
    notes.push_back(fmt::format("the GPU's clock was not steady while it was timed: {} to {} MHz", *state->sm_mhz_low,
                                *state->sm_mhz_high));
  uint64_t reasons = 0;
  for (const GpuSample& sample : samples_) reasons |= sample.reasons & runtime::cuda::kPowerOrHeat;
  if (reasons != 0)
    notes.push_back(fmt::format("power or heat held the GPU's clock down while it was timed: `{}`",
                                fmt::join(runtime::cuda::names_of_reasons(reasons), "`, `")));
  return notes;
}

}  // namespace tilepilot::eval
