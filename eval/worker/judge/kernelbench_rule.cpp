#include "eval/worker/judge/kernelbench_rule.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "eval/process/wire.h"

namespace tilepilot::eval {

std::vector<uint64_t> kernelbench_seeds(int count) {
  constexpr uint64_t kSeed = 42;
  constexpr int64_t kBelow = 4294967295;
  auto generator = at::detail::createCPUGenerator(kSeed);
  std::vector<uint64_t> seeds;
  for (int i = 0; i < count; ++i)
    seeds.push_back(static_cast<uint64_t>(at::randint(kBelow, {1}, generator, at::kLong).item<int64_t>()));
  return seeds;
}

double seconds_to_draw(int64_t numbers) {
  constexpr int64_t kSample = int64_t{1} << 19;
  if (numbers <= kSample) return 0;
  auto generator = at::detail::createCPUGenerator(0);
  const at::Tensor sample = at::empty({kSample}, at::kFloat).zero_();
  const double begin = monotonic_seconds();
  sample.normal_(0, 1, generator);
  return (monotonic_seconds() - begin) * static_cast<double>(numbers) / kSample;
}

double tolerance_of_kernelbench(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? 1e-2 : 1e-4;
}

bool all_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  constexpr int64_t kAtOnce = int64_t{1} << 24;
  at::NoGradGuard no_grad;
  const at::Tensor a = actual.reshape({-1}), e = expected.reshape({-1});
  for (int64_t begin = 0; begin < e.numel(); begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, e.numel() - begin);
    const at::Tensor part = e.narrow(0, begin, count);
    if (!at::allclose(a.narrow(0, begin, count).to(part.device()), part, tolerance, tolerance)) return false;
  }
  return true;
}

bool are_close(const Trial& trial, const std::vector<at::Tensor>* given, const std::vector<size_t>& place,
               double& tolerance) {
  bool close = given != nullptr;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    const at::Tensor& eager = trial.outputs[i].eager;
    const double allowed = tolerance_of_kernelbench(eager.scalar_type());
    tolerance = std::max(tolerance, allowed);
    if (!close) continue;
    const at::Tensor& actual = (*given)[place[i]];
    close = actual.scalar_type() == eager.scalar_type() && actual.sizes() == eager.sizes() &&
            all_close(actual, eager, allowed);
  }
  return close;
}

int64_t numbers_of_inputs(const Graph& forward) {
  int64_t numbers = 0;
  for (const GraphValue& value : forward.values)
    if (value.kind == GraphValue::Kind::input && value.is_tensor) numbers += value.numel();
  return numbers;
}

}  // namespace tilepilot::eval
