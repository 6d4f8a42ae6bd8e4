#include "eval/worker/perturbation.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <set>

namespace tilepilot::eval {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && std::string_view(text).substr(text.size() - end.size()) == end;
}

bool is_running_statistic(const GraphValue& value) {
  return value.kind == GraphValue::Kind::buffer &&
         (ends_with(value.name, "running_mean") || ends_with(value.name, "running_var"));
}

// In [-1, 1), float64.
at::Tensor uniform_like(const at::Tensor& tensor, at::Generator& generator) {
  return at::empty(tensor.sizes(), at::dtype(at::kDouble).device(tensor.device())).uniform_(-1, 1, generator);
}

void perturb(at::Tensor tensor, bool additive, at::Generator& generator) {
  at::Tensor value = tensor.to(at::kDouble);
  double rms = value.numel() > 0 ? std::sqrt(value.square().mean().item<double>()) : 0;
  at::Tensor changed = value.mul(uniform_like(value, generator).mul_(0.1).add_(1));
  // Weights that start as zeros (biases) must change too; running variances must stay positive.
  if (additive) changed.add_(uniform_like(value, generator).mul_(rms > 0 ? 0.05 * rms : 0.05));
  tensor.copy_(changed);
}

}  // namespace

State perturbed_weights(const Graph& graph, const State& state, uint64_t seed) {
  at::NoGradGuard no_grad;
  State result = copy_state(state, false);
  auto generator = at::detail::createCPUGenerator(seed);
  std::set<void*> done;
  for (size_t i = 0; i < result.size(); ++i) {
    auto& value = graph.values[i];
    bool parameter = value.kind == GraphValue::Kind::parameter;
    if (!result[i].defined() || !result[i].is_floating_point() || (!parameter && !is_running_statistic(value)))
      continue;
    if (done.insert(result[i].unsafeGetTensorImpl()).second) perturb(result[i], parameter, generator);
  }
  return result;
}

at::Tensor nudged(const at::Tensor& tensor, double epsilon, uint64_t seed) {
  at::Generator generator = at::globalContext().defaultGenerator(tensor.device()).clone();
  generator.set_current_seed(seed);
  return tensor.mul(uniform_like(tensor, generator).mul_(epsilon / 2).add_(1));
}

}  // namespace tilepilot::eval
