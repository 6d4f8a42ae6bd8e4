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
#include "eval/worker/truth/digest.h"
#include "eval/worker/truth/slice_check.h"
#include "eval/worker/truth/transitions.h"
#include "eval/worker/truth/weight_rows.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

const std::string kOnHost = "the float64 reference is computed on the processor: ";
constexpr double kSingleEpsilon = 0x1p-23;
// Apart from each other, so that nothing is moved alike. PyTorch's generator takes 32 bits of a seed.
constexpr uint64_t kSeedsOfInputs = 1'000'000, kSeedsOfNodes = 2'000'000, kSeedsOfState = 3'000'000,
                   kSeedsOfSlice = 10'000'000, kSeedsOfDraw = 123'456'789;

// What the sets of weights beyond the first three are made by.
constexpr std::pair<int, BufferMove> kBufferMoves[] = {{kMovedBuffers, BufferMove::far},
                                                       {kNearBuffers, BufferMove::near},
                                                       {kMovedFloatBuffers, BufferMove::floats},
                                                       {kStretchedBuffers, BufferMove::stretched},
                                                       {kFurtherBuffers, BufferMove::far}};
constexpr std::pair<int, Stretch> kStretches[] = {{kStretchedWeights, {.low = -2, .high = 2, .signs = true}},
                                                  {kLargerWeights, {.low = 0.5, .high = 2.5}},
                                                  {kLargeWeights, {.low = 5, .high = 6}},
                                                  {kFairlyLargeWeights, {.low = 3, .high = 4}},
                                                  {kSmallWeights, {.low = -10, .high = -8}},
                                                  {kEmptyRows, {.empty_rows = true}},
                                                  {kOffsetWeights, {.offset = 64}}};

// nullptr: the set is made otherwise.
template <class Rule, size_t n>
const Rule* rule_of(const std::pair<int, Rule> (&rules)[n], int set) {
  const auto* found = std::find_if(std::begin(rules), std::end(rules), [&](auto& rule) { return rule.first == set; });
  return found == std::end(rules) ? nullptr : &found->second;
}

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

int64_t bytes_of(const State& state) {
  int64_t bytes = 0;
  for (auto& tensor : state) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  return bytes;
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
  given_weights_ = TRY(make_state(reference_.forward, reference_, stored_));
  recipe_constants_ = TRY(make_state(reference_.inputs, reference_, stored_));
  eager_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exported, options_.device)));
  exact_ = std::make_unique<Replay>(TRY(Replay::prepare(reference_.forward, Precision::exact, options_.device)));
  const GraphUses uses(reference_.forward);
  if (!exact_->is_random()) exact_run_ = plan_exact_run(uses, options_.exact_bytes, options_.find_slices);
  used_ = used_values(reference_.forward);
  singled_out_ =
      singled_out(reference_.forward, reference_.inputs, [&](int value) { return elements_of(uses, value); });
  reads_whole_numbers_ = reads_whole_numbers(reference_, uses);
  leave_out_unfit_weights();
  find_read_state();
  find_transitions();
  return {};
}

// Bounds of bins, a padding token.
std::vector<double> TrialMaker::elements_of(const GraphUses& uses, int value) {
  constexpr int64_t kMost = 64;
  const GraphValue& described = uses.value(value);
  if (!described.is_tensor || described.numel() > kMost || described.dtype.starts_with("complex")) return {};
  const auto part = graph_of_constant(uses, value);
  if (!part) return {};
  at::Tensor tensor = given_weights_[static_cast<size_t>(value)];
  for (const GraphNode& node : part->nodes)
    for (const int operand : operands(node)) compared_.insert(static_cast<size_t>(operand));
  compared_.insert(static_cast<size_t>(value));
  if (uses.producer(value) >= 0) {
    const auto replay = Replay::prepare(*part, Precision::exact);
    if (!replay.ok() || replay->is_random()) return {};
    State needed(given_weights_.size());
    for (const GraphNode& node : part->nodes)
      for (const int operand : operands(node))
        needed[static_cast<size_t>(operand)] = given_weights_[static_cast<size_t>(operand)];
    auto made = replay->run({}, copy_state(needed, true));
    if (!made.ok() || made->empty()) return {};
    tensor = (*made)[0];
  }
  std::vector<double> elements;
  for (int64_t i = 0; tensor.defined() && i < tensor.numel(); ++i)
    elements.push_back(tensor.flatten()[i].item<double>());
  return elements;
}

bool TrialMaker::has_movable_weights() const {
  return std::any_of(reference_.parameters.begin(), reference_.parameters.end(),
                     [](auto& each) { return each.value >= 0 && (!each.is_buffer || is_variance(each.name)); });
}

bool TrialMaker::has_counters() const { return !counters_of(reference_.forward, given_weights_).empty(); }

bool TrialMaker::has_gates() const { return eval::has_gates(reference_.forward, given_weights_); }
bool TrialMaker::has_movable_buffers() const { return eval::has_movable_buffers(reference_.forward, given_weights_); }

Status TrialMaker::try_on_host(const std::vector<IValue>& leaves, const State& state) const {
  if (options_.device.is_cpu() || !reads_whole_numbers_) return {};
  const auto replay = TRY(Replay::prepare(reference_.forward, Precision::exported));
  TRY(replay.run(copy_leaves(leaves), copy_state(state, false, c10::DeviceType::CPU)));
  return {};
}

// Each buffer that a call changes is given another value, to see whether the outputs change.
void TrialMaker::find_read_state() {
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
      std::any_of(values.begin(), values.end(), [&](size_t value) { return is_integer(given_weights_[value]); });
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
      if (!try_on_host(leaves, state).ok()) return true;
      auto made = eager_->run(copy_leaves(leaves, options_.device), state);
      if (!made.ok() || made->size() != outputs.size()) return true;
      for (size_t i = 0; i < outputs.size(); ++i)
        if (digest_of((*made)[i]) != outputs[i]) return true;
    } catch (const std::exception&) { return true; }
  }
  return false;
}

void TrialMaker::find_transitions() {
  const std::vector<size_t> counters = counters_of(reference_.forward, given_weights_);
  if (counters.empty()) return;
  const auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return;
  if (options_.device.is_cpu() || !reads_whole_numbers_) {
    steps_to_the_end_ = steps_to_the_end(counters, *eager_, given_weights_, *leaves, options_.device, options_.seed);
    return;
  }
  const auto on_host = Replay::prepare(reference_.forward, Precision::exported);  // as in `try_on_host`
  if (on_host.ok())
    steps_to_the_end_ =
        steps_to_the_end(counters, *on_host, given_weights_, *leaves, c10::DeviceType::CPU, options_.seed);
}

// Weights that are drawn anew may be none that the model can work with: those stay.
void TrialMaker::leave_out_unfit_weights() {
  if (reference_.parameters.empty()) return;
  const auto leaves = fresh_inputs(options_.seed);
  if (!leaves.ok()) return;  // told where inputs are made for a trial
  const auto places_with = [&](int set) -> std::optional<std::vector<at::Tensor>> {
    try {
      const auto trial = run_eager({.weights = set, .leaves = *leaves});
      return trial.ok() ? std::optional(finite_places(*trial)) : std::nullopt;
    } catch (const std::exception&) { return std::nullopt; }
  };
  std::optional<std::vector<at::Tensor>> given;  // known once some set gives what is no number
  const Fits fits = [&](int set) {
    const auto places = places_with(set);
    const auto is_whole = [](const at::Tensor& each) { return !each.defined(); };
    if (!places || std::all_of(places->begin(), places->end(), is_whole)) return places.has_value();
    if (!given) given = places_with(kGivenWeights);
    return given && same_places(*given, *places);
  };
  for (const int set : {kRedrawnWeights, kMovedWeights})
    if (!fits(set) && fits(kGivenWeights)) find_unmoved(set, fits);
  if (unmoved_.empty()) return;
  std::vector<std::string> names;
  for (const size_t value : unmoved_) names.push_back(reference_.forward.values[value].name);
  constexpr size_t kMost = 4;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  notes_.push_back(
      fmt::format("with other values of `{}`{} the model gives no numbers: they are as constructed in "
                  "every trial",
                  fmt::join(names, "`, `"), count > kMost ? fmt::format(" and {} more", count - kMost) : ""));
}

// By halves: those with which the outputs are numbers move, as long as there is patience.
void TrialMaker::find_unmoved(int set, const Fits& fits) {
  int runs_left = 32;
  const std::vector<size_t> movable = movable_weights(reference_.forward, given_weights_);
  std::vector<size_t> open;
  for (const size_t value : movable)
    if (unmoved_.count(value) == 0) open.push_back(value);
  unmoved_.insert(open.begin(), open.end());
  const std::function<void(size_t, size_t)> move = [&](size_t begin, size_t end) {
    if (begin == end || runs_left-- <= 0) return;
    for (size_t i = begin; i < end; ++i) unmoved_.erase(open[i]);
    kept_weights_.clear();
    if (fits(set)) return;
    for (size_t i = begin; i < end; ++i) unmoved_.insert(open[i]);
    if (end - begin == 1) return;
    const size_t middle = begin + (end - begin) / 2;
    move(begin, middle);
    move(middle, end);
  };
  move(0, open.size() / 2);
  move(open.size() / 2, open.size());
  kept_weights_.clear();
}

State TrialMaker::weights(int set) const {
  const BufferMove* move = rule_of(kBufferMoves, set);
  const bool on_host = options_.device.is_cpu();
  if (!on_host && !given_on_device_) given_on_device_ = copy_state(given_weights_, false, options_.device);
  const State& given = on_host ? given_weights_ : *given_on_device_;
  if (set == kGivenWeights || (reference_.parameters.empty() && !move)) return given;
  if (auto kept = kept_weights_.find(set); kept != kept_weights_.end()) return kept->second;
  const Graph& graph = reference_.forward;
  const uint64_t seed = options_.seed;
  State made;
  if (set == kNearlyThere) {
    made = copy_state(given, false, options_.device);
    for (auto& [value, steps] : steps_to_the_end_) made[value].add_(steps);
  } else if (move) {
    constexpr int64_t kSteps = 3;  // a place in a ring that one count hides another one shows
    made = moved_buffers(graph, given, seed + 2, *move);
    if (set == kFurtherBuffers)
      for (const size_t value : counters_of(graph, given)) made[value].add_(kSteps);
  } else if (set == kMovedWeights || set == kMovedGates) {
    made = perturbed_weights(graph, given, seed, unmoved_);
    if (set == kMovedGates) made = moved_buffers(graph, made, seed + 2, BufferMove::gates);
  } else {
    made = redrawn_weights(graph, given, seed + 1, unmoved_);
    if (const Stretch* stretch = rule_of(kStretches, set))
      made = stretched_weights(graph, made, seed + static_cast<uint64_t>(set), *stretch, unmoved_);
  }
  keep_weights(set, made);
  return made;
}

int64_t TrialMaker::bytes_of_weights() const { return bytes_of(given_weights_); }

void TrialMaker::keep_weights(int set, const State& weights) const {
  int64_t bytes = bytes_of(weights);
  for (auto& [other, kept] : kept_weights_) bytes += bytes_of(kept);
  if (bytes <= options_.kept_bytes) kept_weights_.emplace(set, weights);
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
  if (trial.before || rule_of(kBufferMoves, trial.weights)) TRY(try_on_host(trial.leaves, before));
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

Result<Trial> TrialMaker::make_trial(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const {
  auto leaves = TRY(fresh_inputs(recipe.input_seed));
  apply_stress(recipe.stress, facts, recipe.input_seed, leaves);
  if (recipe.stress.kind == StressKind::near)
    put_near_weights(reference_.forward, weights(recipe.weights), facts, recipe.input_seed, leaves);
  auto trial = TRY(run_eager({.forward_seed = recipe.forward_seed,
                              .weights = recipe.weights,
                              .numbers = recipe.stress.kind == StressKind::numbers ? recipe.stress.strength : 0,
                              .leaves = std::move(leaves)}));
  TRY(add_truth(trial));
  trial.keeps_round = recipe.stress.kind == StressKind::grid;
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
