#include "eval/worker/truth/trial.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "eval/graph/input_numbers.h"
#include "eval/torch/gpu.h"
#include "eval/torch/span.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/slice_check.h"
#include "eval/worker/truth/stress/transitions.h"
#include "eval/worker/truth/stress/weight_rows.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

const std::string kOnHost = "the float64 reference is computed on the processor: ";
constexpr double kSingleEpsilon = 0x1p-23;
// Apart from each other, so that nothing is moved alike. PyTorch's generator takes 32 bits of a seed.
constexpr uint64_t kSeedsOfInputs = 1'000'000, kSeedsOfNodes = 2'000'000, kSeedsOfState = 3'000'000,
                   kSeedsOfSlice = 10'000'000, kSeedsOfDraw = 123'456'789;

at::Tensor exact_tensor(const at::Tensor& tensor, double epsilon, uint64_t seed, c10::Device device,
                        const SingledOut& singled_out = {}, bool keeps_round = false) {
  const bool floating = tensor.is_floating_point();
  const at::Tensor exact = tensor.to(device, floating ? at::kDouble : tensor.scalar_type(), false, /*copy=*/true);
  // Labels and masks are what they are: moved ones would be equal to no others.
  if (!floating || epsilon == 0 || are_choices(tensor)) return exact;
  at::Tensor moved = singled_out.in_order ? nudged_by_value(exact, epsilon, seed) : nudged(exact, epsilon, seed);
  if (keeps_round) moved = at::where(is_round(exact), exact, moved);
  // Beside such a value lie others.
  if (singled_out.values.empty()) return moved;
  const at::Tensor values = at::tensor(singled_out.values, at::dtype(at::kDouble).device(device));
  return at::where(at::isin(exact, values), exact, moved);
}

// All are moved but `kept`, by value of the graph.
State exact_state(const State& state, double epsilon, uint64_t seed, c10::Device device, const std::set<size_t>& kept,
                  bool keeps_round) {
  State exact = copy_state(state, true, device);
  if (epsilon == 0) return exact;
  std::map<void*, at::Tensor> made;
  for (size_t i = 0; i < exact.size(); ++i) {
    at::Tensor& tensor = exact[i];
    if (!tensor.defined() || tensor.scalar_type() != at::kDouble || kept.count(i) != 0) continue;
    auto& moved = made[tensor.unsafeGetTensorImpl()];
    if (!moved.defined()) moved = nudged(tensor, epsilon, seed++);
    if (keeps_round) moved = at::where(is_round(tensor), tensor, moved);
    tensor = moved;
  }
  return exact;
}

// Where a tensor of one axis is unlike seven in eight of its elements: all places, or some of many.
std::vector<int64_t> rare_places(const at::Tensor& tensor) {
  constexpr int64_t kMost = 16, kOneIn = 8;
  if (!tensor.defined() || tensor.dim() != 1 || tensor.numel() < kOneIn || tensor.is_complex()) return {};
  const at::Tensor values = tensor.to(at::kDouble), usual = std::get<0>(values.mode());
  const at::Tensor places = values.ne(usual).nonzero().flatten();
  if (places.numel() * kOneIn > tensor.numel()) return {};
  std::vector<int64_t> some;
  const int64_t step = std::max<int64_t>(1, places.numel() / kMost);
  for (int64_t i = 0; i < places.numel(); i += step) some.push_back(places[i].item<int64_t>());
  return some;
}

// All, or so many from the first to the last.
std::vector<double> some_elements(const at::Tensor& tensor, int64_t most) {
  std::vector<double> elements;
  if (!tensor.defined()) return elements;
  const at::Tensor flat = tensor.flatten();
  const int64_t count = std::min(flat.numel(), most);
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(flat[count == flat.numel() ? i : i * (flat.numel() - 1) / (count - 1)].item<double>());
  return elements;
}

std::vector<bool> find_aliases(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                               const State& state) {
  std::vector<bool> aliases;
  for (auto& output : outputs) {
    const auto shares = [&](const at::Tensor& other) {
      return other.defined() && &other != &output && output.is_alias_of(other);
    };
    const auto any = [&](auto& tensors) { return std::any_of(tensors.begin(), tensors.end(), shares); };
    aliases.push_back(any(inputs) || any(state) || any(outputs));
  }
  return aliases;
}

}  // namespace

Result<std::unique_ptr<TrialMaker>> TrialMaker::make(const Reference& reference, const ReferenceOptions& options) {
  auto maker = std::unique_ptr<TrialMaker>(new TrialMaker(reference, options));
  TRY(maker->prepare());
  return maker;
}

Status TrialMaker::prepare() {
  stored_ = TRY(load_safetensors(reference_.weights));
  weights_ = std::make_unique<WeightSets>(reference_, TRY(make_state(reference_.forward, reference_, stored_)),
                                          WeightSets::Options{options_.seed, options_.device, options_.kept_bytes});
  recipe_constants_ = TRY(make_state(reference_.inputs, reference_, stored_));
  eager_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exported, options_.device)));
  exact_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exact, options_.device)));
  const GraphUses uses(reference_.forward);
  if (!exact_->is_random()) exact_run_ = plan_exact_run(uses, options_.exact_bytes, options_.find_slices);
  used_ = used_values(reference_.forward);
  singled_out_ = singled_out(
      reference_.forward, reference_.inputs, [&](int value) { return elements_of(uses, value); },
      [&](int value) { return rare_places(weights_->given()[static_cast<size_t>(value)]); });
  reads_whole_numbers_ = reads_whole_numbers(reference_, uses);
  leave_out_unfit_weights();
  find_read_state(uses);
  find_transitions();
  find_turning_points(uses);
  find_bounds();
  return {};
}

// Bounds of bins, a padding token, a threshold that is learned; of many some.
std::vector<double> TrialMaker::elements_of(const GraphUses& uses, int value) {
  constexpr int64_t kMost = 64;
  const GraphValue& described = uses.value(value);
  if (!described.is_tensor || described.dtype.starts_with("complex")) return {};
  if (uses.producer(value) < 0 && described.kind != GraphValue::Kind::input) {
    compared_.insert(static_cast<size_t>(value));
    return some_elements(weights_->given()[static_cast<size_t>(value)], kMost);
  }
  const auto part = described.numel() <= kMost ? graph_of_constant(uses, value) : std::nullopt;
  if (!part) return {};
  at::Tensor tensor = weights_->given()[static_cast<size_t>(value)];
  for (const GraphNode& node : part->nodes)
    for (const int operand : operands(node)) compared_.insert(static_cast<size_t>(operand));
  compared_.insert(static_cast<size_t>(value));
  if (uses.producer(value) >= 0) {
    const auto replay = Replay::prepare(*part, Precision::exact);
    if (!replay.ok() || replay->is_random()) return {};
    State needed(weights_->given().size());
    for (const GraphNode& node : part->nodes)
      for (const int operand : operands(node))
        needed[static_cast<size_t>(operand)] = weights_->given()[static_cast<size_t>(operand)];
    auto made = replay->run({}, copy_state(needed, true));
    if (!made.ok() || made->empty()) return {};
    tensor = (*made)[0];
  }
  return some_elements(tensor, kMost);
}

// Whether operators may refuse such inputs. Integers stay in the range that was seen, but for those that are singled
// out.
bool TrialMaker::may_be_refused(StressKind kind) const {
  static const std::set<std::string_view> kProbabilities = {"binary_cross_entropy", "bernoulli", "multinomial"};
  static const std::set<std::string_view> kIndices = {
      "embedding",      "embedding_bag", "index",    "index_select", "gather",      "take",
      "take_along_dim", "one_hot",       "scatter",  "put",          "scatter_add", "index_add",
      "index_put",      "index_copy",    "nll_loss", "nll_loss_nd",  "nll_loss2d",  "cross_entropy_loss"};
  const auto has = [&](const std::set<std::string_view>& names) {
    const auto& nodes = reference_.forward.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [&](const GraphNode& n) { return names.count(plain_name(n)) != 0; });
  };
  return kind != StressKind::none && (has(kProbabilities) || (kind == StressKind::special && has(kIndices)));
}

Status TrialMaker::try_on_host(const std::vector<IValue>& leaves, const State& state) const {
  if (options_.device.is_cpu()) return {};
  const auto replay = TRY(Replay::prepare(reference_.forward, Precision::exported));
  TRY(replay.run(copy_leaves(leaves), copy_state(state, false, c10::DeviceType::CPU)));
  return {};
}

// Each buffer that a call changes is given another value, to see whether the outputs change.
void TrialMaker::find_read_state(const GraphUses& uses) {
  const auto& nodes = reference_.forward.nodes;
  const bool may_change = std::any_of(reference_.parameters.begin(), reference_.parameters.end(),
                                      [](auto& each) { return each.is_buffer; }) ||
                          std::any_of(nodes.begin(), nodes.end(), [](auto& node) {
                            return is_in_place(node) || short_name(node).find("batch_norm") != std::string_view::npos;
                          });
  if (reference_.parameters.empty() || !may_change) return;
  auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return;
  try {
    const auto trial = run_eager({.leaves = *leaves});
    if (!trial.ok() || trial->state.empty()) return;
    std::vector<std::string> outputs;
    for (auto& output : trial->outputs) outputs.push_back(digest_of(output.eager));
    std::vector<size_t> values;
    for (auto& changed : trial->state) values.push_back(changed.value);
    // What matters at every tenth call only would not be seen.
    std::erase_if(values, [&](size_t value) {
      return reads_whole_numbers_in(reference_.forward, uses, static_cast<int>(value));
    });
    if (values.empty()) return;
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
  constexpr int64_t kSteps[] = {1, 100, 1'000'000};  // a warm-up ends late
  const bool counts =
      std::any_of(values.begin(), values.end(), [&](size_t value) { return is_integer(weights_->given()[value]); });
  at::NoGradGuard no_grad;
  for (const int64_t step : kSteps) {
    if (step > 1 && !counts) break;
    State state = copy_state(weights(kGivenWeights), false, options_.device);
    for (const size_t value : values) {
      at::Tensor& tensor = state[value];
      tensor = tensor.scalar_type() == at::kBool ? tensor.logical_not() : tensor.add(is_integer(tensor) ? step : 1);
    }
    at::manual_seed(0);
    try {
      if (reads_whole_numbers_ && !try_on_host(leaves, state).ok()) return true;
      auto made = eager_->run(copy_leaves(leaves, options_.device), state);
      if (!made.ok() || made->size() != outputs.size()) return true;
      for (size_t i = 0; i < outputs.size(); ++i)
        if (digest_of((*made)[i]) != outputs[i]) return true;
    } catch (const std::exception&) { return true; }
  }
  return false;
}

void TrialMaker::find_transitions() {
  const std::vector<size_t> counters = counters_of(reference_.forward, weights_->given());
  if (counters.empty()) return;
  const auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return;
  const bool here = options_.device.is_cpu() || !reads_whole_numbers_;
  const auto on_host = Replay::prepare(reference_.forward, Precision::exported);  // as in `try_on_host`
  if (!here && !on_host.ok()) return;
  weights_->set_steps_to_the_end(steps_to_the_end(counters, here ? *eager_ : *on_host, weights_->given(), *leaves,
                                                  here ? options_.device : c10::DeviceType::CPU, options_.seed));
}

void TrialMaker::find_turning_points(const GraphUses& uses) {
  std::map<size_t, std::vector<int64_t>> points;
  for (const size_t counter : counters_of(reference_.forward, weights_->given())) {
    const auto at = turning_points(reference_.forward, static_cast<int>(counter),
                                   [&](int value) { return elements_of(uses, value); });
    if (!at.empty()) points[counter] = at;
  }
  weights_->set_turning_points(std::move(points));
}

void TrialMaker::find_bounds() {
  std::map<size_t, std::vector<double>> bounds;
  for (auto& weight : reference_.parameters) {
    if (weight.value < 0 || weight.is_buffer) continue;
    auto found = bounds_of_weight(reference_.forward, weight.value);
    const at::Tensor& given = weights_->given()[static_cast<size_t>(weight.value)];
    if (!found.empty() && given.defined() && given.is_floating_point())
      bounds[static_cast<size_t>(weight.value)] = std::move(found);
  }
  weights_->set_bounds(std::move(bounds));
}

// Weights that are drawn anew may be none that the model can work with: those stay.
void TrialMaker::leave_out_unfit_weights() {
  if (reference_.parameters.empty()) return;
  const auto fits = fits_given_inputs();
  if (!fits) return;  // told where inputs are made for a trial
  if (const std::string note = weights_->leave_out_unfit(fits); !note.empty()) notes_.push_back(note);
}

WeightSets::Fits TrialMaker::fits_given_inputs() const {
  auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return nullptr;
  const auto places_with = [this, leaves = *std::move(leaves)](int set) -> std::optional<NumberPlaces> {
    try {
      const auto trial = run_eager({.weights = set, .leaves = leaves});
      return trial.ok() ? std::optional(NumberPlaces(*trial)) : std::nullopt;
    } catch (const std::exception&) { return std::nullopt; }
  };
  // Known once some set gives what is no number.
  return [places_with, given = std::make_shared<std::optional<NumberPlaces>>()](int set) {
    const auto places = places_with(set);
    if (!places || places->are_all()) return places.has_value();
    if (!*given) *given = places_with(kGivenWeights);
    return *given && places->are_like(**given);
  };
}

bool TrialMaker::leave_out_of(int set) {
  const auto fits = fits_given_inputs();
  return fits && weights_->leave_out_of(set, fits);
}

// The leaves stay on the device.
Result<std::vector<IValue>> TrialMaker::fresh_inputs(uint64_t seed) const {
  return make_inputs(reference_, recipe_constants_, seed, options_.device);
}

void TrialMaker::free_device() const {
  if (!options_.device.is_cpu()) release_unused_gpu_memory(options_.idle_bytes);
}

State TrialMaker::state_before(const Trial& trial) const {
  State state = weights(trial.weights);
  if (trial.before)
    for (auto& [value, tensor] : trial.before->eager) state[value] = tensor;
  return state;
}

State TrialMaker::exact_state_before(const Trial& trial, Nudge nudge, c10::Device device) const {
  const uint64_t seed = nudge.seed + kSeedsOfInputs;
  State state = exact_state(weights(trial.weights), nudge.epsilon, seed, device, compared_, nudge.keeps_round);
  if (!trial.before) return state;
  for (auto& [value, tensor] : trial.before->exact)
    state[value] = exact_tensor(tensor, nudge.epsilon, seed + kSeedsOfState + value, device);
  return state;
}

Result<const OtherGraph*> TrialMaker::graph_with(int numbers) const {
  auto& kept = other_numbers_[numbers];
  if (!kept) kept = TRY(OtherGraph::make(reference_, numbers, stored_, options_.device));
  return kept.get();
}

Result<Trial> TrialMaker::run_eager(Trial trial) const {
  trial.inputs = tensors_of(trial.leaves);
  const State before = state_before(trial);
  auto eager_leaves = copy_leaves(trial.leaves, options_.device);
  State state = copy_state(before, false, options_.device);
  const std::vector<uint32_t> versions = versions_of(state);
  if (reads_whole_numbers_ && (trial.before || WeightSets::is_of_buffers(trial.weights)))
    TRY(try_on_host(trial.leaves, before));
  at::manual_seed(trial.forward_seed);
  const OtherGraph* other = trial.numbers == 0 ? nullptr : TRY(graph_with(trial.numbers));
  auto eager = TRY(other ? other->eager->run(eager_leaves, other->state_of(state, false, options_.device))
                         : eager_->run(eager_leaves, state));
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
  trial.state = changed_state(trial.before ? weights(trial.weights) : before, before, state, versions);
  return trial;
}

Result<Trial> TrialMaker::make_trial(std::vector<IValue> leaves, uint64_t forward_seed, int weights) const {
  // The truth needs twice the memory that eager does, and none of its intermediate values are left by now.
  auto trial = TRY(run_eager({.forward_seed = forward_seed, .weights = weights, .leaves = std::move(leaves)}));
  TRY(add_truth(trial));
  return trial;
}

Result<std::vector<Trial>> TrialMaker::make_chain(const std::vector<TrialRecipe>& recipes) const {
  std::vector<Trial> chain;
  std::shared_ptr<StateBefore> before;
  try {
    for (const TrialRecipe& recipe : recipes) {
      auto trial = run_eager({.forward_seed = recipe.forward_seed,
                              .weights = recipe.weights,
                              .before = before,
                              .leaves = TRY(fresh_inputs(recipe.input_seed))});
      if (!trial.ok()) break;
      const State exact = TRY(add_truth(*trial));
      before = before ? std::make_shared<StateBefore>(*before) : std::make_shared<StateBefore>();
      for (auto& changed : trial->state) {
        before->eager[changed.value] = changed.expected.eager;
        before->exact[changed.value] = exact[changed.value];
      }
      chain.push_back(*std::move(trial));
    }
  } catch (const std::exception&) {}  // a cache that is full
  return chain;
}

Result<Trial> TrialMaker::run_eager(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const {
  auto leaves = TRY(fresh_inputs(recipe.input_seed));
  apply_stress(recipe.stress, facts, recipe.input_seed, leaves);
  if (recipe.stress.kind == StressKind::near)
    put_near_weights(reference_.forward, weights(recipe.weights), facts, recipe.input_seed, leaves);
  if (may_be_refused(recipe.stress.kind)) TRY(try_on_host(leaves, weights(recipe.weights)));
  return run_eager({.forward_seed = recipe.forward_seed,
                    .weights = recipe.weights,
                    .numbers = recipe.stress.kind == StressKind::numbers ? recipe.stress.strength : 0,
                    .leaves = std::move(leaves)});
}

Result<Trial> TrialMaker::make_trial(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const {
  auto trial = TRY(run_eager(recipe, facts));
  TRY(add_truth(trial));
  trial.keeps_round = recipe.stress.kind == StressKind::grid || recipe.stress.kind == StressKind::halves;
  return trial;
}

Result<Trial> TrialMaker::make_by_seed(uint64_t seed) const {
  auto leaves = TRY(make_inputs(reference_, recipe_constants_, seed, c10::DeviceType::CPU));
  for (IValue& leaf : leaves) {
    if (leaf.isTensor()) leaf = leaf.toTensor().to(options_.device);
  }
  return run_eager({.forward_seed = seed, .leaves = std::move(leaves)});
}

Result<State> TrialMaker::add_truth(Trial& trial) const {
  auto truth = TRY(run_exact(trial, {}));
  for (size_t i = 0; i < trial.outputs.size(); ++i) trial.outputs[i].truth = truth.outputs[i];
  auto after = tensors_of(truth.leaves);
  for (size_t k = 0; k < trial.mutated.size(); ++k) trial.mutated_expected[k].truth = after[trial.mutated[k]];
  for (auto& changed : trial.state) changed.expected.truth = truth.state[changed.value];
  const std::string note = kOnHost + truth.why_on_host;
  const bool told = std::any_of(notes_.begin(), notes_.end(), [](auto& each) { return each.find(kOnHost) == 0; });
  if (!truth.why_on_host.empty() && !told) notes_.push_back(note);
  free_device();
  return std::move(truth.state);
}

Result<TrialMaker::Nudged> TrialMaker::nudged_truth(const Trial& trial, Move move) const {
  // Programs in 16 bit compute in float32, unless 16 bit is what they were asked for.
  const double of_nodes = options_.precision ? move.epsilon : std::min(move.epsilon, kSingleEpsilon);
  auto truth = TRY(run_exact(
      trial, {move.times * move.epsilon, 1 + move.draw * kSeedsOfDraw, move.times * of_nodes, trial.keeps_round}));
  free_device();
  return Nudged{std::move(truth.outputs), std::move(truth.state)};
}

std::vector<IValue> TrialMaker::exact_leaves(const std::vector<IValue>& leaves, Nudge nudge, c10::Device device) const {
  std::vector<IValue> result;
  size_t number = 0;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) {
      result.push_back(leaf);
      continue;
    }
    result.emplace_back(exact_tensor(leaf.toTensor(), nudge.epsilon, nudge.seed++, device, singled_out_.at(number++),
                                     nudge.keeps_round));
  }
  return result;
}

Replay::AfterNode TrialMaker::nudge_nodes(Nudge nudge, const OtherGraph* other) const {
  if (nudge.epsilon == 0) return {};
  const Graph& graph = other ? other->graph : reference_.forward;
  const std::vector<bool>& used = other ? other->used : used_;
  return [&graph, &used, terms = AddedTerms(graph), epsilon = nudge.of_nodes, keeps = nudge.keeps_round,
          seed = nudge.seed + kSeedsOfNodes](const GraphNode& node, const std::vector<IValue>& operands,
                                             std::vector<IValue>& results) mutable {
    const bool is_used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](int id) { return id >= 0 && used[static_cast<size_t>(id)]; });
    nudge_means(node, operands, results, epsilon, seed++);
    nudge_products(node, operands, results, seed++);
    nudge_powers(node, operands, results, {.epsilon = epsilon, .seed = seed++, .keeps_round = keeps});
    terms.nudge(node, operands, results, {.epsilon = epsilon, .seed = seed++, .keeps_round = keeps});
    nudge_results(node, operands, results, {epsilon, seed++, is_used, is_used ? units_of_sum(graph, node) : 0, keeps});
  };
}

Result<TrialMaker::Truth> TrialMaker::run_whole(const Trial& trial, Nudge nudge, c10::Device device) const {
  const OtherGraph* other = nullptr;
  if (trial.numbers != 0) other = TRY(graph_with(trial.numbers));
  const Graph& graph = other ? other->graph : reference_.forward;
  std::optional<Replay> on_host;
  if (device != options_.device) on_host.emplace(TRY(Replay::prepare(graph, Precision::exact)));
  const Replay& replay = on_host ? *on_host : other ? *other->exact : *exact_;
  Truth truth;
  truth.leaves = exact_leaves(trial.leaves, nudge, device);
  truth.state = exact_state_before(trial, nudge, device);
  at::manual_seed(trial.forward_seed);
  const State& state = truth.state;
  truth.outputs =
      TRY(replay.run(truth.leaves, other ? other->state_of(state, true, device) : state, nudge_nodes(nudge, other)));
  if (nudge.epsilon == 0) return truth;
  State changed(truth.state.size());
  for (auto& each : trial.state) changed[each.value] = truth.state[each.value];
  truth = {std::move(truth.outputs), {}, std::move(changed), {}, {}};
  return truth;
}

// Weights and whole inputs are moved once, as every slice has them; the parts of inputs each on their own.
Result<TrialMaker::Truth> TrialMaker::run_slices(const Trial& trial, Nudge nudge, c10::Device device) const {
  const auto replay = TRY(SlicedReplay::prepare(reference_.forward, exact_run_, device));
  const State state = exact_state_before(trial, nudge, device);
  SlicedReplay::Hooks hooks;
  hooks.widen = [&](const at::Tensor& part, size_t input, int64_t slice) {
    const auto tensors = std::count_if(trial.leaves.begin(), trial.leaves.begin() + static_cast<std::ptrdiff_t>(input),
                                       [](const IValue& leaf) { return leaf.isTensor(); });
    const uint64_t seed = nudge.seed + input + static_cast<uint64_t>(slice) * kSeedsOfSlice;
    return exact_tensor(part, nudge.epsilon, seed, device, singled_out_.at(static_cast<size_t>(tensors)),
                        nudge.keeps_round);
  };
  if (nudge.epsilon > 0)
    hooks.after_node = [&](int64_t slice) -> Replay::AfterNode {
      Nudge own = nudge, common = nudge;
      own.seed += static_cast<uint64_t>(slice) * kSeedsOfSlice;
      return [&replay, part = nudge_nodes(own), whole = nudge_nodes(common)](
                 const GraphNode& node, const std::vector<IValue>& operands, std::vector<IValue>& results) {
        const bool cut = !node.outputs.empty() && node.outputs[0] >= 0 && replay.is_cut(node.outputs[0]);
        (cut ? part : whole)(node, operands, results);
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
  if (is_sliced() && changes_nothing && trial.numbers == 0) {
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
