#include "eval/worker/truth/input_change.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "eval/torch/span.h"

namespace tilepilot::eval {
namespace {

// Prime, so that no axis of a tensor has this period.
constexpr int64_t kPeriod = 65521;

uint64_t next(uint64_t& state) {  // SplitMix64
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

at::Tensor factors(uint64_t key, int64_t count) {
  at::Tensor result = at::empty({count}, at::kFloat);
  auto* data = result.mutable_data_ptr<float>();
  constexpr float kStep = 0x1p-24F / 8;
  for (int64_t i = 0; i < count; ++i) data[i] = 1 - kStep * static_cast<float>(next(key) >> 40);
  return result;
}

void multiply(const at::Tensor& elements, uint64_t key) {
  const int64_t count = elements.numel(), period = std::min(count, kPeriod);
  if (count == 0) return;
  const at::Tensor by = factors(key, period).to(elements.device(), elements.scalar_type());
  const int64_t whole = count / period;
  elements.narrow(0, 0, whole * period).view({whole, period}).mul_(by);
  if (const int64_t rest = count % period; rest > 0)
    elements.narrow(0, whole * period, rest).mul_(by.narrow(0, 0, rest));
}

}  // namespace

void change_elements(const at::Tensor& tensor, const InputChange& change) {
  at::NoGradGuard no_grad;
  if (change.key == 0 || !tensor.is_floating_point() || tensor.numel() == 0) return;
  const at::Tensor elements = span_of(tensor);
  auto place = [&](double share) {
    const auto at = static_cast<int64_t>(share * static_cast<double>(elements.numel()));
    return std::clamp<int64_t>(at, 0, elements.numel());
  };
  const int64_t from = place(change.from), to = std::max(from, place(change.to));
  multiply(elements.narrow(0, from, to - from), change.key);
}

}  // namespace tilepilot::eval
