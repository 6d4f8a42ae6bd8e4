#include "eval/worker/truth/trial.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/torch/gpu.h"
#include "eval/torch/span.h"
#include "eval/worker/truth/digest.h"
#include "eval/worker/truth/perturbation.h"
#include "eval/worker/truth/slice_check.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

const std::string kOnHost = "the float64 reference is computed on the processor: ";
constexpr double kSingleEpsilon = 0x1p-23;
// Apart from each other, so that nothing is moved alike. PyTorch's generator takes 32 bits of a seed.
constexpr uint64_t kSeedsOfInputs = 1'000'000, kSeedsOfNodes = 2'000'000, kSeedsOfSlice = 10'000'000,
                   kSeedsOfDraw = 123'456'789;

at::Tensor exact_tensor(const at::Tensor& tensor, double epsilon, uint64_t seed, c10::Device device) {
  const bool floating = tensor.is_floating_point();
  const at::Tensor exact = tensor.to(device, floating ? at::kDouble : tensor.scalar_type(), false, /*copy=*/true);
  return floating && epsilon > 0 ? nudged(exact, epsilon, seed) : exact;
}

std::vector<IValue> exact_leaves(const std::vector<IValue>& leaves, double epsilon, uint64_t seed, c10::Device device) {
  std::vector<IValue> result;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) {
      result.push_back(leaf);
      continue;
    }
    const at::Tensor& tensor = leaf.toTensor();
    result.emplace_back(exact_tensor(tensor, epsilon, seed, device));
    seed += tensor.is_floating_point() ? 1 : 0;
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
    for (auto& other : outputs) alias = alias || (&other != &output && output.is_alias_of(other));
    aliases.push_back(alias);
  }
  return aliases;
}

bool all_finite(const std::vector<Expected>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const Expected& output) {
    return !output.eager.is_floating_point() || output.eager.isfinite().all().item<bool>();
  });
}

}  // namespace

int64_t Trial::bytes() const {
  int64_t bytes = 0;
  for (auto& input : inputs) bytes += static_cast<int64_t>(input.nbytes());
  auto add = [&](const Expected& each) { bytes += static_cast<int64_t>(each.eager.nbytes() + each.truth.nbytes()); };
  for (auto& each : outputs) add(each);
  for (auto& each : mutated_expected) add(each);
  for (auto& each : state) add(each.expected);
  return bytes;
}

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
    copies.emplace_back(copy_of(leaf.toTensor(), device));
  }
  return copies;
}

Result<std::unique_ptr<TrialMaker>> TrialMaker::make(const Reference& reference, const ReferenceOptions& options) {
  auto maker = std::unique_ptr<TrialMaker>(new TrialMaker(reference, options));
  TRY(maker->prepare());
  return maker;
}

Status TrialMaker::prepare() {
  const TensorMap stored = TRY(load_safetensors(reference_.weights));
  given_weights_ = TRY(make_state(reference_.forward, reference_, stored));
  recipe_constants_ = TRY(make_state(reference_.inputs, reference_, stored));
  eager_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exported, options_.device)));
  exact_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exact, options_.device)));
  const GraphUses uses(reference_.forward);
  if (!exact_->is_random()) exact_run_ = plan_exact_run(uses, options_.exact_bytes, options_.find_slices);
  for (size_t id = 0; id < reference_.forward.values.size(); ++id)
    used_.push_back(!uses.users(static_cast<int>(id)).empty());
  leave_out_unfit_weights();
  find_read_state();
  return {};
}

bool TrialMaker::has_parameters() const {
  return std::any_of(reference_.parameters.begin(), reference_.parameters.end(),
                     [](const auto& parameter) { return parameter.value >= 0 && !parameter.is_buffer; });
}

bool TrialMaker::has_movable_buffers() const { return eval::has_movable_buffers(reference_.forward, given_weights_); }

// Each buffer that a call changes is given another value, to see whether the outputs change.
void TrialMaker::find_read_state() {
  const bool has_buffers = std::any_of(reference_.parameters.begin(), reference_.parameters.end(),
                                       [](auto& parameter) { return parameter.is_buffer; });
  if (!has_buffers) return;
  auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return;
  try {
    const auto trial = run_eager(*leaves, 0, 0);
    if (!trial.ok() || trial->state.empty()) return;
    std::vector<std::string> outputs;
    for (auto& output : trial->outputs) outputs.push_back(digest_of(output.eager));
    std::vector<size_t> values;
    for (auto& changed : trial->state) values.push_back(changed.value);
    if (!reads_state(*leaves, values, outputs)) {
      unread_.insert(values.begin(), values.end());
      return;
    }
    for (const size_t value : values)
      if (!reads_state(*leaves, {value}, outputs)) unread_.insert(value);
  } catch (const std::exception&) { return; }  // told where trials are made
}

bool TrialMaker::reads_state(const std::vector<IValue>& leaves, const std::vector<size_t>& values,
                             const std::vector<std::string>& outputs) const {
  State state = copy_state(given_weights_, false, options_.device);
  at::NoGradGuard no_grad;
  for (const size_t value : values) {
    at::Tensor& tensor = state[value];
    tensor = tensor.scalar_type() == at::kBool ? tensor.logical_not() : tensor.add(1);
  }
  at::manual_seed(0);
  try {
    auto made = eager_->run(copy_leaves(leaves, options_.device), state);
    if (!made.ok() || made->size() != outputs.size()) return true;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (digest_of((*made)[i]) != outputs[i]) return true;
    return false;
  } catch (const std::exception&) { return true; }
}

// Weights that are drawn anew may be none that the model can work with.
void TrialMaker::leave_out_unfit_weights() {
  auto fits = [&](int set) {
    auto leaves = fresh_inputs(options_.seed);
    if (!leaves.ok()) return true;  // told where inputs are made for a trial
    auto trial = run_eager(*std::move(leaves), 0, set);
    return trial.ok() && all_finite(trial->outputs);
  };
  redraws_ = reference_.parameters.empty() || fits(2) || !fits(0);
}

State TrialMaker::weights(int set) const {
  if (set == 2 && !redraws_) set = 1;
  if (set == 0 || (reference_.parameters.empty() && set != kMovedBuffers)) return given_weights_;
  if (auto kept = kept_weights_.find(set); kept != kept_weights_.end()) return kept->second;
  // Drawn where that takes no time.
  const State given = options_.device.is_cpu() ? given_weights_ : copy_state(given_weights_, false, options_.device);
  State made = set == kMovedBuffers ? moved_buffers(reference_.forward, given, options_.seed + 2)
               : set == 1           ? perturbed_weights(reference_.forward, given, options_.seed)
                                    : redrawn_weights(reference_.forward, given, options_.seed + 1);
  int64_t bytes = 0;
  for (auto& tensor : made) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  if (set == kStretchedWeights) made = stretched_weights(reference_.forward, made, options_.seed + 3);
  if (!options_.device.is_cpu()) made = copy_state(made, false, c10::DeviceType::CPU);
  if (bytes <= options_.kept_bytes / 4) kept_weights_.emplace(set, made);
  return made;
}

// The leaves stay on the device.
Result<std::vector<IValue>> TrialMaker::fresh_inputs(uint64_t seed) const {
  return make_inputs(reference_, recipe_constants_, seed, options_.device);
}

void TrialMaker::free_device() const {
  if (!options_.device.is_cpu()) release_unused_gpu_memory();
}

std::vector<ChangedState> TrialMaker::changed_state(const State& before, const State& after) const {
  std::vector<ChangedState> changed;
  for (auto& parameter : reference_.parameters) {
    const auto value = static_cast<size_t>(parameter.value);
    if (parameter.value < 0 || !parameter.is_buffer || !before[value].defined()) continue;
    if (digest_of(before[value]) == digest_of(after[value])) continue;
    const at::Tensor &was = before[value], &is = after[value];
    const bool counts = is.numel() == 1 && at::isIntegralType(is.scalar_type(), /*includeBool=*/false) &&
                        is.item<int64_t>() == was.item<int64_t>() + 1;
    changed.push_back({parameter.name, value, {is, {}, {}}, unread_.count(value) == 0, counts});
  }
  return changed;
}

Result<Trial> TrialMaker::run_eager(std::vector<IValue> leaves, uint64_t forward_seed, int weights) const {
  Trial trial;
  trial.forward_seed = forward_seed;
  trial.weights = weights;
  trial.leaves = std::move(leaves);
  trial.inputs = tensors_of(trial.leaves);
  const State before = this->weights(weights);
  auto eager_leaves = copy_leaves(trial.leaves, options_.device);
  State state = copy_state(before, false, options_.device);
  at::manual_seed(trial.forward_seed);
  auto eager = TRY(eager_->run(eager_leaves, state));
  auto inputs_after = tensors_of(eager_leaves);
  trial.aliases = find_aliases(eager, inputs_after, state);
  for (size_t i = 0; i < eager.size(); ++i) {
    // A copy: a later call may write into what a view of an input shows.
    trial.outputs.push_back({trial.aliases[i] ? eager[i].clone() : eager[i], {}, eager[i].strides().vec()});
  }
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    if (digest_of(trial.inputs[i]) == digest_of(inputs_after[i])) continue;
    trial.mutated.push_back(i);
    trial.mutated_expected.push_back({inputs_after[i], {}, {}});
  }
  trial.state = changed_state(before, state);
  return trial;
}

Result<Trial> TrialMaker::make_trial(std::vector<IValue> leaves, uint64_t forward_seed, int weights) const {
  // The truth needs twice the memory that eager does, and none of its intermediate values are left by now.
  auto trial = TRY(run_eager(std::move(leaves), forward_seed, weights));
  TRY(add_truth(trial));
  return trial;
}

Result<Trial> TrialMaker::make_trial(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const {
  auto leaves = TRY(fresh_inputs(recipe.input_seed));
  apply_stress(recipe.stress, facts, recipe.input_seed, leaves);
  return make_trial(std::move(leaves), recipe.forward_seed, recipe.weights);
}

Result<Trial> TrialMaker::make_by_seed(uint64_t seed) const {
  auto leaves = TRY(make_inputs(reference_, recipe_constants_, seed, c10::DeviceType::CPU));
  for (IValue& leaf : leaves) {
    if (leaf.isTensor()) leaf = leaf.toTensor().to(options_.device);
  }
  return run_eager(std::move(leaves), seed, 0);
}

Status TrialMaker::add_truth(Trial& trial) const {
  auto truth = TRY(run_exact(trial, {}));
  for (size_t i = 0; i < trial.outputs.size(); ++i) trial.outputs[i].truth = truth.outputs[i];
  auto after = tensors_of(truth.leaves);
  for (size_t k = 0; k < trial.mutated.size(); ++k) trial.mutated_expected[k].truth = after[trial.mutated[k]];
  for (auto& changed : trial.state) changed.expected.truth = truth.state[changed.value];
  const std::string note = kOnHost + truth.why_on_host;
  const bool told = std::any_of(notes_.begin(), notes_.end(), [](auto& each) { return each.find(kOnHost) == 0; });
  if (!truth.why_on_host.empty() && !told) notes_.push_back(note);
  free_device();
  return {};
}

Result<std::vector<at::Tensor>> TrialMaker::nudged_truth(const Trial& trial, Move move) const {
  // Programs in 16 bit compute in float32, unless 16 bit is what they were asked for.
  const double of_nodes = options_.precision ? move.epsilon : std::min(move.epsilon, kSingleEpsilon);
  auto truth = TRY(run_exact(trial, {move.times * move.epsilon, 1 + move.draw * kSeedsOfDraw, move.times * of_nodes}));
  free_device();
  return std::move(truth.outputs);
}

Replay::AfterNode TrialMaker::nudge_nodes(Nudge nudge) const {
  if (nudge.epsilon == 0) return {};
  return [this, epsilon = nudge.of_nodes, seed = nudge.seed + kSeedsOfNodes](const GraphNode& node,
                                                                             std::vector<IValue>& results) mutable {
    const bool is_used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](int id) { return id >= 0 && used_[static_cast<size_t>(id)]; });
    nudge_results(node, results, {epsilon, seed++, is_used, is_used ? units_of_sum(reference_.forward, node) : 0});
  };
}

Result<TrialMaker::Truth> TrialMaker::run_whole(const Trial& trial, Nudge nudge, c10::Device device) const {
  std::optional<Replay> on_host;
  if (device != options_.device) on_host.emplace(TRY(Replay::prepare(reference_.forward, Precision::exact)));
  Truth truth;
  truth.leaves = exact_leaves(trial.leaves, nudge.epsilon, nudge.seed, device);
  truth.state = exact_state(weights(trial.weights), nudge.epsilon, nudge.seed + kSeedsOfInputs, device);
  at::manual_seed(trial.forward_seed);
  truth.outputs = TRY((on_host ? *on_host : *exact_).run(truth.leaves, truth.state, nudge_nodes(nudge)));
  if (nudge.epsilon > 0) truth = {std::move(truth.outputs), {}, {}, {}, {}};
  return truth;
}

// Weights and whole inputs are moved once, as every slice has them; the parts of inputs each on their own.
Result<TrialMaker::Truth> TrialMaker::run_slices(const Trial& trial, Nudge nudge, c10::Device device) const {
  const auto replay = TRY(SlicedReplay::prepare(reference_.forward, exact_run_, device));
  const State state = exact_state(weights(trial.weights), nudge.epsilon, nudge.seed + kSeedsOfInputs, device);
  SlicedReplay::Hooks hooks;
  hooks.widen = [&](const at::Tensor& part, size_t input, int64_t slice) {
    return exact_tensor(part, nudge.epsilon, nudge.seed + input + static_cast<uint64_t>(slice) * kSeedsOfSlice, device);
  };
  if (nudge.epsilon > 0)
    hooks.after_node = [&](int64_t slice) -> Replay::AfterNode {
      Nudge own = nudge, common = nudge;
      own.seed += static_cast<uint64_t>(slice) * kSeedsOfSlice;
      return [&replay, part = nudge_nodes(own), whole = nudge_nodes(common)](const GraphNode& node,
                                                                             std::vector<IValue>& results) {
        const bool cut = !node.outputs.empty() && node.outputs[0] >= 0 && replay.is_cut(node.outputs[0]);
        (cut ? part : whole)(node, results);
      };
    };
  const SlicedReplay::Call call{trial.leaves, state, hooks};
  Truth truth;
  truth.outputs = TRY(replay.run(call));
  if (slices_are_checked_ || nudge.epsilon > 0) return truth;
  std::vector<Expected> outputs = trial.outputs;
  if (outputs.size() != truth.outputs.size())
    return make_error(DiagnosticKind::tensor_operation_failed, {}, "it gave fewer results than eager");
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i].truth = truth.outputs[i];
  auto checked = check_slices(replay, call, outputs);
  slices_are_checked_ = checked.ok();
  if (!checked.ok()) truth.why_not_in_slices = checked.error().message;
  return truth;
}

Result<TrialMaker::Truth> TrialMaker::run_somewhere(const RunOn& run) const {
  auto attempt = [&](c10::Device device) -> Result<Truth> {
    try {
      return run(device);
    } catch (const std::exception& error) {
      return make_error(DiagnosticKind::tensor_operation_failed, {}, error.what());
    }
  };
  auto truth = attempt(options_.device);
  // Another generator would draw other numbers than eager has.
  if (truth.ok() || options_.device.is_cpu() || exact_->is_random()) return truth;
  free_device();
  auto on_host = attempt(c10::DeviceType::CPU);
  if (on_host.ok()) on_host->why_on_host = truth.error().message;
  return on_host;
}

Result<TrialMaker::Truth> TrialMaker::run_exact(const Trial& trial, Nudge nudge) const {
  const bool changes_nothing = trial.mutated.empty() && trial.state.empty();
  if (is_sliced() && changes_nothing) {
    auto truth = run_somewhere([&](c10::Device device) { return run_slices(trial, nudge, device); });
    const std::string why_not = truth.ok() ? truth->why_not_in_slices : truth.error().message;
    if (why_not.empty()) return truth;
    exact_run_.slices.reset();
    notes_.push_back("the float64 reference is computed at once, not in slices: " + why_not);
    free_device();
  }
  return run_somewhere([&](c10::Device device) { return run_whole(trial, nudge, device); });
}

}  // namespace tilepilot::eval
