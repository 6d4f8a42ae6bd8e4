#include "eval/worker/reference_side.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <random>

#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/digest.h"
#include "eval/worker/perturbation.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

std::vector<IValue> exact_leaves(const std::vector<IValue>& leaves, double epsilon, uint64_t seed, c10::Device device) {
  std::vector<IValue> result;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) {
      result.push_back(leaf);
      continue;
    }
    const at::Tensor& tensor = leaf.toTensor();
    const bool floating = tensor.is_floating_point();
    at::Tensor exact = tensor.to(device, floating ? at::kDouble : tensor.scalar_type(), false, /*copy=*/true);
    result.emplace_back(floating && epsilon > 0 ? nudged(exact, epsilon, seed++) : exact);
  }
  return result;
}

State exact_state(const State& state, double epsilon, uint64_t seed, c10::Device device) {
  State exact = copy_state(state, true, device);
  if (epsilon == 0) return exact;
  std::map<void*, at::Tensor> made;
  for (auto& tensor : exact) {
    if (!tensor.defined() || tensor.scalar_type() != at::kDouble) continue;
    auto& moved = made[tensor.unsafeGetTensorImpl()];
    if (!moved.defined()) moved = nudged(tensor, epsilon, seed++);
    tensor = moved;
  }
  return exact;
}

std::vector<bool> find_aliases(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                               const State& state) {
  std::vector<bool> aliases;
  for (auto& output : outputs) {
    bool alias = false;
    for (auto& input : inputs) alias = alias || output.is_alias_of(input);
    for (auto& tensor : state) alias = alias || (tensor.defined() && output.is_alias_of(tensor));
    aliases.push_back(alias);
  }
  return aliases;
}

ScaledError worse(ScaledError a, ScaledError b) { return {std::max(a.max, b.max), std::max(a.rms, b.rms)}; }

int64_t bytes_of(const Trial& trial) {
  int64_t bytes = 0;
  for (auto& input : trial.inputs) bytes += static_cast<int64_t>(input.nbytes());
  for (auto* list : {&trial.outputs, &trial.mutated_expected}) {
    for (auto& each : *list) bytes += static_cast<int64_t>(each.eager.nbytes() + each.truth.nbytes());
  }
  return bytes;
}

bool same_tensors(const std::vector<Expected>& a, const std::vector<Expected>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (digest_of(a[i].eager) != digest_of(b[i].eager)) return false;
  }
  return true;
}

}  // namespace

std::vector<at::Tensor> tensors_of(const std::vector<IValue>& leaves) {
  std::vector<at::Tensor> tensors;
  for (auto& leaf : leaves) {
    if (leaf.isTensor()) tensors.push_back(leaf.toTensor());
  }
  return tensors;
}

std::vector<IValue> copy_leaves(const std::vector<IValue>& leaves, c10::Device device) {
  std::vector<IValue> copies;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) {
      copies.push_back(leaf);
      continue;
    }
    auto& tensor = leaf.toTensor();
    at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
    copies.emplace_back(copy.copy_(tensor));
  }
  return copies;
}

Result<std::unique_ptr<ReferenceSide>> ReferenceSide::make(Reference reference, const ReferenceOptions& options) {
  auto side = std::unique_ptr<ReferenceSide>(new ReferenceSide(std::move(reference), options));
  TRY(side->prepare());
  return side;
}

Status ReferenceSide::prepare() {
  weights_ = TRY(load_safetensors(reference_.weights));
  weight_sets_.push_back(TRY(make_state(reference_.forward, reference_, weights_)));
  weight_sets_.push_back(perturbed_weights(reference_.forward, weight_sets_[0], options_.seed));
  recipe_constants_ = TRY(make_state(reference_.inputs, reference_, weights_));
  eager_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exported, options_.device)));
  exact_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exact, options_.device)));
  notes_ = reference_.warnings;
  TRY(add_trial(0));
  limit_trials();
  for (int i = 1; i < options_.trials; ++i) TRY(add_trial(i));
  for (auto& name : eager_->widened()) {
    notes_.push_back(fmt::format(
        "PyTorch cannot run {} on the {}: eager computes it in float32 and rounds the results, also when it is timed",
        name, options_.device.is_cpu() ? "CPU" : "GPU"));
  }
  TRY(find_allowances());
  find_fixed_inputs();
  find_degeneracy();
  return {};
}

Result<std::vector<IValue>> ReferenceSide::fresh_inputs(uint64_t seed) const {
  auto leaves = TRY(make_inputs(reference_, recipe_constants_, seed, options_.device));
  for (IValue& leaf : leaves) {
    if (leaf.isTensor()) leaf = leaf.toTensor().cpu();
  }
  return leaves;
}

void ReferenceSide::free_device() const {
  if (!options_.device.is_cpu()) release_unused_gpu_memory();
}

Result<ReferenceSide::Truth> ReferenceSide::run_exact(const Replay& replay, const Trial& trial, Nudge nudge,
                                                      c10::Device device) const {
  constexpr uint64_t kSeedsOfInputs = 1'000'000;
  Truth truth;
  truth.leaves = exact_leaves(trial.leaves, nudge.epsilon, nudge.seed, device);
  auto& weights = weight_sets_[static_cast<size_t>(trial.weights)];
  State state = exact_state(weights, nudge.epsilon, nudge.seed + kSeedsOfInputs, device);
  at::manual_seed(trial.forward_seed);
  truth.outputs = TRY(replay.run(truth.leaves, state));
  for (at::Tensor& output : truth.outputs) output = output.cpu();
  return truth;
}

Result<ReferenceSide::Truth> ReferenceSide::run_exact(const Trial& trial, Nudge nudge) const {
  auto attempt = [&](const Replay& replay, c10::Device device) -> Result<Truth> {
    try {
      return run_exact(replay, trial, nudge, device);
    } catch (const std::exception& error) {
      return make_error(DiagnosticKind::tensor_operation_failed, {}, error.what());
    }
  };
  auto truth = attempt(*exact_, options_.device);
  // Another generator would draw other numbers than eager has.
  if (truth.ok() || options_.device.is_cpu() || exact_->is_random()) return truth;
  free_device();
  auto on_host = attempt(TRY(Replay::prepare(reference_.forward, Precision::exact)), c10::DeviceType::CPU);
  if (on_host.ok()) on_host->why_on_host = truth.error().message;
  return on_host;
}

Result<std::vector<Expected>> ReferenceSide::expect(const std::vector<IValue>& leaves, uint64_t seed) const {
  auto eager_leaves = copy_leaves(leaves, options_.device);
  at::manual_seed(seed);
  auto eager = TRY(eager_->run(eager_leaves, copy_state(weight_sets_[0], false, options_.device)));
  std::vector<Expected> expected;
  for (at::Tensor& output : eager) expected.push_back({output.cpu(), {}, output.strides().vec()});
  eager.clear();
  eager_leaves.clear();
  Trial call;
  call.forward_seed = seed;
  call.leaves = leaves;
  auto truth = TRY(run_exact(call, {}));
  free_device();
  for (size_t i = 0; i < expected.size(); ++i) expected[i].truth = truth.outputs[i];
  return expected;
}

// All trials are kept, for the candidates to come: of large models fewer, but always one with other weights.
void ReferenceSide::limit_trials() {
  constexpr int kFewest = 2;
  const int64_t bytes = bytes_of(trials_[0]);
  const int64_t affordable = std::clamp<int64_t>(options_.memory_bytes / std::max<int64_t>(bytes, 1), kFewest, INT_MAX);
  if (options_.trials <= affordable) return;
  notes_.push_back(fmt::format("{} trials instead of {}: the inputs and expected values of one take {:.1f} GiB",
                               affordable, options_.trials, static_cast<double>(bytes) / (1 << 30)));
  options_.trials = static_cast<int>(affordable);
}

// The first trial has the exported weights, of the others every second has other ones.
Status ReferenceSide::add_trial(int index) {
  std::mt19937_64 seeds(options_.seed + static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15);
  Trial trial;
  trial.weights = index % 2;
  trial.leaves = TRY(fresh_inputs(seeds()));
  trial.inputs = tensors_of(trial.leaves);
  trial.forward_seed = seeds() >> 1;
  auto& weights = weight_sets_[static_cast<size_t>(trial.weights)];
  auto eager_leaves = copy_leaves(trial.leaves, options_.device);
  State state = copy_state(weights, false, options_.device);
  at::manual_seed(trial.forward_seed);
  auto eager = TRY(eager_->run(eager_leaves, state));
  auto inputs_after = tensors_of(eager_leaves);
  auto aliases = find_aliases(eager, inputs_after, state);
  for (size_t i = 0; i < eager.size(); ++i) {
    // A copy: a later call may write into what a view of an input shows.
    at::Tensor kept = aliases[i] ? eager[i].clone() : eager[i];
    trial.outputs.push_back({kept.cpu(), {}, eager[i].strides().vec()});
  }
  if (index == 0) aliases_ = std::move(aliases);
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    if (digest_of(trial.inputs[i]) == digest_of(inputs_after[i])) continue;
    trial.mutated.push_back(i);
    trial.mutated_expected.push_back({inputs_after[i].cpu(), {}});
  }
  // The truth needs twice the memory that eager does.
  for (auto* tensors : {&eager, &inputs_after}) tensors->clear();
  eager_leaves.clear();
  state.clear();
  TRY(add_truth(trial));
  trials_.push_back(std::move(trial));
  return {};
}

Status ReferenceSide::add_truth(Trial& trial) {
  auto truth = TRY(run_exact(trial, {}));
  for (size_t i = 0; i < trial.outputs.size(); ++i) trial.outputs[i].truth = truth.outputs[i];
  auto after = tensors_of(truth.leaves);
  for (size_t k = 0; k < trial.mutated.size(); ++k) trial.mutated_expected[k].truth = after[trial.mutated[k]].cpu();
  if (trials_.empty() && !truth.why_on_host.empty())
    notes_.push_back(fmt::format("the float64 reference is computed on the processor: {}", truth.why_on_host));
  free_device();
  return {};
}

Result<ScaledError> ReferenceSide::sensitivity(const Trial& trial, size_t output) {
  double epsilon = epsilon_of(trial.outputs[output].eager);
  if (nudged_.empty()) {
    nudged_.push_back(TRY(run_exact(trial, {epsilon, 1})).outputs);
    free_device();
  }
  return scaled_error(nudged_[0][output], trial.outputs[output]);
}

double ReferenceSide::epsilon_of(const at::Tensor& output) const {
  double own = machine_epsilon(element_type_name(output.scalar_type()));
  return options_.precision ? std::max(own, machine_epsilon(element_type_name(*options_.precision))) : own;
}

Status ReferenceSide::find_allowances() {
  int64_t terms = longest_sum(reference_.forward);
  for (size_t i = 0; i < trials_[0].outputs.size(); ++i) {
    auto& first = trials_[0].outputs[i].eager;
    Allowance allowance;
    allowance.float32_too = is_asked_in_16_bit();
    if (first.is_floating_point()) {
      ToleranceBasis basis{epsilon_of(first), terms, {}, {}};
      for (auto& trial : trials_) {
        basis.eager = worse(basis.eager, scaled_error(trial.outputs[i].eager, trial.outputs[i]));
      }
      basis.sensitivity = TRY(sensitivity(trials_[0], i));
      allowance.scaled = allowed_error(basis);
    } else {
      int64_t differences = 0;
      for (auto& trial : trials_) {
        differences = std::max(differences, count_differences(trial.outputs[i].eager, trial.outputs[i].truth));
      }
      allowance.differences = allowed_differences(differences);
    }
    allowances_.push_back(allowance);
  }
  nudged_.clear();
  return {};
}

void ReferenceSide::find_fixed_inputs() {
  auto& first = trials_[0].inputs;
  for (size_t i = 0; i < first.size(); ++i) {
    if (trials_.size() < 2 || !first[i].is_floating_point() || first[i].numel() == 0) continue;
    auto digest = digest_of(first[i]);
    bool fixed = std::all_of(trials_.begin(), trials_.end(),
                             [&](const Trial& trial) { return digest_of(trial.inputs[i]) == digest; });
    if (!fixed) continue;
    notes_.push_back(fmt::format(
        "input {} has the same values in every trial: `get_inputs` draws it from no random function of PyTorch", i));
  }
}

bool ReferenceSide::trivial_answer_passes(const Expected& expected, const Allowance& allowance,
                                          const std::string& name) {
  auto passes = [&](const at::Tensor& answer) { return within(scaled_error(answer, expected), allowance.scaled); };
  std::string answer;
  auto& truth = expected.truth;
  if (passes(at::zeros_like(truth))) answer = "zeros";
  if (answer.empty() && truth.numel() > 1 && passes(at::full_like(truth, truth.mean().item()))) answer = "its mean";
  for (auto& input : trials_[0].inputs) {
    if (answer.empty() && input.numel() == truth.numel() && input.is_floating_point() &&
        passes(input.reshape(truth.sizes()))) {
      answer = "a copy of an input";
    }
  }
  if (answer.empty()) return false;
  notes_.push_back(fmt::format("{} cannot be told from {} within the tolerance", name, answer));
  return true;
}

void ReferenceSide::find_degeneracy() {
  auto& outputs = trials_[0].outputs;
  bool all_trivial = !outputs.empty();
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool floating = outputs[i].eager.is_floating_point() && outputs[i].eager.numel() > 0;
    // A view of an input is a copy of it by definition.
    bool trivial =
        floating && !aliases_[i] && trivial_answer_passes(outputs[i], allowances_[i], fmt::format("output {}", i));
    all_trivial = all_trivial && trivial;
  }
  bool inputs_vary = trials_.size() > 2 && !trials_[0].inputs.empty() &&
                     digest_of(trials_[0].inputs[0]) != digest_of(trials_[2].inputs[0]);
  bool constant = inputs_vary && same_tensors(trials_[0].outputs, trials_[2].outputs);
  if (constant) notes_.push_back("the outputs do not depend on the inputs");
  degenerate_ = all_trivial || constant;
}

}  // namespace tilepilot::eval
