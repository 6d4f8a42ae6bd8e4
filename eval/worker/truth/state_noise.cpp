#include "eval/worker/truth/state_noise.h"

#include <ATen/Functions.h>

#include <algorithm>

namespace tilepilot::eval {
namespace {

double rms_of_change(const at::Tensor& from, const at::Tensor& to) {
  const at::Tensor change = to.to(at::kDouble).sub(from.to(to.device(), at::kDouble)).nan_to_num_(0, 0, 0);
  return change.numel() > 0 ? change.square_().mean().sqrt().item<double>() : 0;
}

}  // namespace

StateNoise::StateNoise(const ReferenceSide& side, int weights) {
  for (size_t index = 0; index < side.trial_count(); ++index) {
    if (side.weights_of_trial(index) != weights) continue;
    const auto trial = side.trial(index);
    if (!trial.ok()) return;
    const State start = side.weights(weights);
    const auto noise = side.state_noise(**trial);
    for (auto& changed : (*trial)->state) {
      const auto found = noise.find(changed.value);
      if (found == noise.end()) continue;
      const at::Tensor& before = start[changed.value];
      changes_[changed.value] = {before, rms_of_change(before, changed.expected.eager), found->second};
    }
    return;
  }
}

at::Tensor StateNoise::after(size_t calls, size_t value, const at::Tensor& model) const {
  const auto found = changes_.find(value);
  if (found == changes_.end()) return {};
  const Change& change = found->second;
  double times = static_cast<double>(calls);
  if (change.of_one_call > 0)
    times = std::clamp(rms_of_change(change.start, model) / change.of_one_call, 1.0, std::max(times, 1.0));
  return change.noise.mul(times);
}

}  // namespace tilepilot::eval
