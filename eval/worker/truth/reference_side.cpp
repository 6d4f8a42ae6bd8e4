#include "eval/worker/truth/reference_side.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "eval/graph/choices.h"
#include "eval/graph/graph_uses.h"
#include "eval/graph/input_numbers.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/error_scan.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

constexpr size_t kFewestTrials = 2;
// Where trials take long there are two: the second has weights that were drawn anew.
constexpr int kWeightsOfTrials[] = {kGivenWeights, kRedrawnWeights, kGivenWeights, kMovedWeights, kRedrawnWeights};
constexpr double kRoundedPart = 16;  // of the range of an integer output: differences of rounding are smaller
constexpr double kRoundings = 4;     // times eager's largest difference may a candidate's be
constexpr SumLengths kLongest = {1, INT32_MAX};

class Elapsed {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Results jump at certain values of operands, which are round numbers more often than not.
bool jumps(const Graph& graph) {
  static const std::set<std::string_view> kJumps = {"round",
                                                    "floor",
                                                    "ceil",
                                                    "trunc",
                                                    "fix",
                                                    "frac",
                                                    "sign",
                                                    "sgn",
                                                    "eq",
                                                    "ne",
                                                    "lt",
                                                    "le",
                                                    "gt",
                                                    "ge",
                                                    "bucketize",
                                                    "hardshrink",
                                                    "threshold",
                                                    "fmod",
                                                    "remainder",
                                                    "heaviside",
                                                    "histc",
                                                    "isin",
                                                    "searchsorted",
                                                    "floor_divide",
                                                    "grid_sampler",
                                                    "grid_sampler_2d",
                                                    "grid_sampler_3d",
                                                    "fake_quantize_per_tensor_affine",
                                                    "fake_quantize_per_channel_affine",
                                                    "quantize_per_tensor"};
  const auto type_of = [&](int id) -> std::string_view { return graph.values[static_cast<size_t>(id)].dtype; };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
    const std::string_view name = plain_name(node);
    if (name == "div") return argument_of(node, 2, "rounding_mode") != nullptr;
    const auto ids = operands(node);
    const bool is_made = !node.outputs.empty() && node.outputs[0] >= 0;
    const bool rounds = is_made && ids.size() == 1 && type_of(ids[0]).find("float") != std::string_view::npos &&
                        type_of(node.outputs[0]).find("int") != std::string_view::npos;  // a conversion
    return rounds || kJumps.count(name) != 0;
  });
}

// One element among many can decide what a result is: the largest, or one that is true.
bool one_decides(const Graph& graph) {
  constexpr std::string_view kDecided[] = {"any",    "all",    "max",    "min",     "amax",   "amin",
                                           "argmax", "argmin", "cummax", "aminmax", "cummin", "count_nonzero"};
  constexpr std::string_view kCounts[] = {"sum", "mean", "cumsum"};
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
    const std::string_view name = short_name(node);
    if (node.overload == "other") return false;  // the larger of two tensors, element by element
    if (std::find(std::begin(kDecided), std::end(kDecided), name) != std::end(kDecided)) return true;
    if (std::find(std::begin(kCounts), std::end(kCounts), name) == std::end(kCounts)) return false;
    const auto used = operands(node);
    return !used.empty() && graph.values[static_cast<size_t>(used[0])].dtype == "bool";
  });
}

// What roundings lead to that is no finite number (an infinity times a draw) says nothing of their size.
at::Tensor finite_or(const at::Tensor& moved, const at::Tensor& truth) {
  return at::where(moved.isfinite(), moved, truth.to(moved.device(), moved.scalar_type()));
}

}  // namespace

Result<std::unique_ptr<ReferenceSide>> ReferenceSide::make(Reference reference, const ReferenceOptions& options) {
  auto side = std::unique_ptr<ReferenceSide>(new ReferenceSide(std::move(reference), options));
  TRY(side->prepare());
  return side;
}

Status ReferenceSide::prepare() {
  maker_ = TRY(TrialMaker::make(reference_, options_));
  sums_ = longest_sums(reference_.forward);
  parts_ = output_parts(reference_.forward);
  open_ = open_outputs(reference_.forward);
  jumps_ = jumps(reference_.forward);
  one_decides_ = one_decides(reference_.forward);
  notes_ = reference_.warnings;
  for (int i = 0; i < options_.trials; ++i) {
    std::mt19937_64 seeds(options_.seed + static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15);
    TrialRecipe recipe{.input_seed = seeds()};
    recipe.forward_seed = seeds() >> 1;
    recipe.weights = kWeightsOfTrials[static_cast<size_t>(i) % std::size(kWeightsOfTrials)];
    recipes_.push_back(recipe);
  }
  TRY(measure_given_trials());
  for (auto& note : maker_->notes()) notes_.push_back(note);
  for (auto& name : eager().widened()) {
    notes_.push_back(fmt::format(
        "PyTorch cannot run {} on the {}: eager computes it in float32 and rounds the results, also when it is timed",
        name, options_.device.is_cpu() ? "CPU" : "GPU"));
  }
  if (maker_->is_random())
    notes_.push_back(
        "the model draws random numbers in `forward`: right is what draws them with the same operators in the same "
        "order; masks of another generator are not compared as distributions");
  note_fixed_inputs();
  note_masks();
  for (auto& number : fixed_numbers(reference_))
    notes_.push_back(number + " is the same in every trial: a program may hold it as a constant");
  return {};
}

// One trial after the other, so that no two need be in memory.
Status ReferenceSide::measure_given_trials() {
  constexpr size_t kMoved = 2;  // trials whose truth is moved: of few elements one draw tells little
  const Elapsed elapsed;
  double waited = 0;
  std::vector<Measured> measured;
  for (size_t i = 0; i < recipes_.size(); ++i) {
    waited += begin_step();
    auto trial = TRY(maker_->make_trial(recipes_[i], {}));
    measured.push_back(TRY(measure(trial, i < kMoved ? std::optional<uint64_t>(0) : std::nullopt)));
    see_inputs(trial.inputs, facts_);
    output_digests_.push_back(digest_of_outputs(trial));
    if (i == 0) {
      aliases_ = trial.aliases;
      mutates_inputs_ = !trial.mutated.empty();
      for (auto& changed : trial.state) {
        if (!changed.is_told_only()) judged_state_.emplace_back(changed.name, changed.value);
        reads_state_ = reads_state_ || changed.is_read;
      }
      note_repetitions(trial.inputs);
      for (size_t k = 0; k < facts_.size(); ++k) facts_[k].singled_out = maker_->singled_out_values().at(k);
    }
    keep_if_small(i, std::move(trial));
    const double each = (elapsed.seconds() - waited) / static_cast<double>(i + 1);
    const auto affordable = std::max({kFewestTrials, i + 1, static_cast<size_t>(options_.trial_seconds / each)});
    if (affordable >= recipes_.size()) continue;
    notes_.push_back(
        fmt::format("{} trials instead of {}: one takes {:.0f} s here", affordable, recipes_.size(), each));
    recipes_.resize(affordable);
  }
  const auto first = TRY(trial(0));
  allowances_ = allowances_from(*first, measured);
  return find_degeneracy(*first, measured);
}

void ReferenceSide::keep_if_small(size_t index, Trial trial) const {
  const int64_t bytes = trial.bytes();
  if (kept_bytes_ + bytes > options_.kept_bytes) return;
  kept_bytes_ += bytes;
  kept_[index] = std::make_shared<const Trial>(std::move(trial));
}

Result<std::shared_ptr<const Trial>> ReferenceSide::trial(size_t index) const {
  if (auto kept = kept_.find(index); kept != kept_.end()) return kept->second;
  return std::make_shared<const Trial>(TRY(maker_->make_trial(recipes_[index], facts_)));
}

Comparison ReferenceSide::compare_closely(const CandidateOutput& actual, const Trial& trial, size_t output,
                                          const Allowance& allowance) const {
  constexpr double kNear = 16, kFew = 0.01;  // how much larger than allowed, or in which part of the elements
  const Expected& expected = trial.outputs[output];
  auto comparison = compare(actual, expected, allowance);
  if (comparison.outcome == Outcome::verified && !expected.eager.is_floating_point() && allowance.differences > 0)
    return compare_choices(actual, trial, output, comparison);
  if (comparison.outcome != Outcome::wrong_values || allowance.is_narrowed) return comparison;
  Allowance wider = allowance;
  // False: it is still wrong.
  const auto passes_with = [&](const std::vector<std::optional<uint64_t>>& draws) {
    auto own = allowance_of_trial(trial, output, draws);
    if (!own.ok()) return false;
    for (size_t part = 0; part < wider.scaled.size(); ++part)
      wider.scaled[part] = worse(own->scaled[part], wider.scaled[part]);
    comparison = compare(actual, expected, wider);
    return comparison.outcome == Outcome::verified;
  };
  if (expected.eager.is_floating_point()) {
    if (passes_with({std::nullopt}) || passes_with({0})) return comparison;
    const bool near = std::any_of(wider.scaled.begin(), wider.scaled.end(), [&](const ScaledError& allowed) {
      return comparison.error.max_rel <= kNear * allowed.max;
    });
    if (!near && comparison.error.fraction_wrong > kFew) return comparison;
    if (passes_with({1, 2, 3, 4, 5, 6})) return comparison;
  }
  if (comparison.error.fraction_wrong > kFew) return comparison;
  constexpr double kWide = 16;
  auto led = where_roundings_lead(actual.tensor, trial, output, kWide);
  if (!led.ok()) return comparison;
  const double most = kFew * static_cast<double>(led->numel());
  if (led->sum().item<double>() > most) return comparison;
  const at::Tensor replaced =
      at::where(*led, expected.truth.to(actual.tensor.scalar_type()), actual.tensor.to(led->device()));
  return compare({replaced, actual.strides}, expected, wider);
}

// As many may differ as roundings decide; what they lead to is one of a few. Half of the elements that differ must be
// among what moved truths give: an answer made up, wherever that many may differ, is not.
Comparison ReferenceSide::compare_choices(const CandidateOutput& actual, const Trial& trial, size_t output,
                                          Comparison passed) const {
  constexpr int64_t kSeldom = 2;
  constexpr double kRoundingsApart = 4;
  const Expected& expected = trial.outputs[output];
  const at::Tensor value = actual.tensor.to(expected.eager.device()), truth = expected.truth.to(value.device());
  const at::Tensor wrong = value.ne(expected.eager).logical_and_(value.ne(truth));
  const int64_t count = wrong.sum().item<int64_t>();
  if (count <= kSeldom) return passed;
  const auto led = where_roundings_lead(actual.tensor, trial, output, kRoundingsApart);
  if (!led.ok()) return passed;
  const int64_t explained = led->to(value.device()).logical_and(wrong).sum().item<int64_t>();
  if (2 * explained >= count) return passed;
  passed.outcome = Outcome::wrong_values;
  passed.detail = fmt::format("{} of {} integers differ, {} of them from all that roundings lead to", count,
                              value.numel(), count - explained);
  return passed;
}

// By eager's errors on its inputs, and by moved truths.
Result<Allowance> ReferenceSide::allowance_of_trial(const Trial& trial, size_t output,
                                                    const std::vector<std::optional<uint64_t>>& draws) const {
  std::vector<Measured> measured;
  for (auto& draw : draws) measured.push_back(TRY(measure(trial, draw)));
  return allowances_from(trial, measured)[output];
}

// Near a jump (`floor`, a comparison, a choice among numbers that are nearly equal) roundings lead to values that no
// tolerance spans. Gives the elements that are far from the truth, and are what some moved truth has there.
Result<at::Tensor> ReferenceSide::where_roundings_lead(const at::Tensor& actual, const Trial& trial, size_t output,
                                                       double roundings) const {
  constexpr uint64_t kDraws = 8;
  const Expected& expected = trial.outputs[output];
  // Of the lowest precision that the model computes in anywhere.
  double epsilon = machine_epsilon("float32");
  for (const GraphValue& each : reference_.forward.values)
    if (each.is_tensor && each.dtype.find("float") != std::string::npos)
      epsilon = std::max(epsilon, machine_epsilon(each.dtype));
  const at::Tensor truth = expected.truth.to(at::kDouble), value = actual.to(truth.device(), at::kDouble);
  const bool floating = expected.eager.is_floating_point();
  const double rms = floating ? scale_of(expected.eager, truth).rms : 0;
  // What roundings explain without a jump; 0 of integers.
  const double floor = allowed_error({epsilon_of(expected.eager), sums_[output], truth.numel(), {}, {}}).max;
  const at::Tensor size = truth.abs().add_(rms).mul_(floating ? floor : 0);
  at::Tensor reached = at::zeros_like(truth, at::kBool), least = truth, most = truth;
  for (uint64_t draw = 1; draw <= kDraws; ++draw) {
    const at::Tensor moved =
        finite_or(TRY(maker_->nudged_truth(trial, {epsilon, draw, roundings})).outputs[output].to(at::kDouble), truth);
    least = at::minimum(least, moved);
    most = at::maximum(most, moved);
    reached.logical_or_(moved.eq(value));
  }
  const at::Tensor slack = size.mul(roundings);  // moved truths err by as much
  // An index between two that may be chosen need not be one.
  if (floating) reached = value.ge(least.sub(slack)).logical_and_(value.le(most.add(slack)));
  return reached.logical_and_(value.sub(truth).abs_().gt(size));
}

Result<ReferenceSide::Measured> ReferenceSide::measure(const Trial& trial, std::optional<uint64_t> draw) const {
  Measured measured;
  std::map<double, std::vector<at::Tensor>> moved;  // by how far
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    auto& output = trial.outputs[i];
    auto& eager = measured.eager.emplace_back();
    auto& sensitive = measured.sensitivity.emplace_back();
    const bool floating = output.eager.is_floating_point();
    measured.differences.push_back(floating ? IntegerDifferences() : integer_differences(output.eager, output.truth));
    if (!floating) continue;
    eager = scaled_errors(output.eager, output, parts_[i]);
    if (!draw) continue;
    const double epsilon = epsilon_of(output.eager);
    if (moved.count(epsilon) == 0) moved[epsilon] = TRY(maker_->nudged_truth(trial, {epsilon, *draw})).outputs;
    sensitive = scaled_errors(finite_or(moved[epsilon][i], output.truth), output, parts_[i]);
  }
  return measured;
}

double ReferenceSide::epsilon_of(const at::Tensor& output) const {
  double own = machine_epsilon(element_type_name(output.scalar_type()));
  return options_.precision ? std::max(own, machine_epsilon(element_type_name(*options_.precision))) : own;
}

std::vector<Allowance> ReferenceSide::allowances_from(const Trial& trial, const std::vector<Measured>& measured) const {
  std::vector<Allowance> allowances;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    auto& output = trial.outputs[i].eager;
    Allowance& allowance = allowances.emplace_back();
    allowance.parts = parts_[i];
    allowance.float32_too = is_asked_in_16_bit();
    IntegerDifferences worst;
    for (auto& each : measured) {
      worst.count = std::max(worst.count, each.differences[i].count);
      worst.largest = std::max(worst.largest, each.differences[i].largest);
      worst.range = std::max(worst.range, each.differences[i].range);
    }
    allowance.differences = allowed_differences(worst.count);
    // Numbers that were rounded differ by little; of indices of equal elements any may be chosen.
    if (worst.count > 0 && worst.largest <= worst.range / kRoundedPart)
      allowance.difference_size = kRoundings * worst.largest;
    for (size_t part = 0; part < measured[0].eager[i].size(); ++part) {
      ToleranceBasis basis{epsilon_of(output), sums_[i], output.numel(), {}, {}, !options_.precision};
      for (auto& each : measured) {
        basis.eager = worse(basis.eager, each.eager[i][part]);
        if (!each.sensitivity[i].empty()) basis.sensitivity = worse(basis.sensitivity, each.sensitivity[i][part]);
      }
      allowance.scaled.push_back(allowed_error(basis));
    }
  }
  return allowances;
}

Allowance ReferenceSide::allowance_of_changed(const Expected& expected, const at::Tensor& noise) const {
  Allowance allowance;
  if (!expected.eager.is_floating_point()) return allowance;
  ToleranceBasis basis{
      epsilon_of(expected.eager), kLongest, expected.eager.numel(), scaled_errors(expected.eager, expected).at(0), {}};
  if (noise.defined()) {
    const at::Tensor truth = expected.truth.to(at::kDouble);
    basis.sensitivity = scaled_errors(truth.add(noise.to(truth.device())), expected).at(0);
  }
  allowance.scaled = {allowed_error(basis)};
  return allowance;
}

std::map<size_t, at::Tensor> ReferenceSide::state_noise(const Trial& trial) const {
  constexpr uint64_t kDraws = 4;
  std::map<size_t, at::Tensor> noise;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    std::map<double, State> moved;  // by how far
    for (auto& changed : trial.state) {
      if (!changed.expected.eager.is_floating_point()) continue;
      const double epsilon = epsilon_of(changed.expected.eager);
      if (moved.count(epsilon) == 0) {
        auto truth = maker_->nudged_truth(trial, {epsilon, draw});
        if (!truth.ok()) return {};
        moved[epsilon] = std::move(truth->state);
      }
      const at::Tensor truth = changed.expected.truth.to(at::kDouble);
      for (const at::Tensor& other : {changed.expected.eager, moved[epsilon][changed.value]}) {
        const at::Tensor off = other.to(truth.device(), at::kDouble).sub(truth).abs_().nan_to_num_(0, 0, 0);
        at::Tensor& most = noise[changed.value];
        most = most.defined() ? at::maximum(most, off) : off;
      }
    }
  }
  return noise;
}

void ReferenceSide::note_fixed_inputs() {
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (!facts_[i].few.empty() && !facts_[i].fixed)
      notes_.push_back(
          fmt::format("input {} holds only {} in every trial, under stress too", i, fmt::join(facts_[i].few, " and ")));
    if ((facts_[i].ascending || facts_[i].symmetric) && !facts_[i].fixed)
      notes_.push_back(fmt::format("input {} is {} in every trial, under stress too", i,
                                   facts_[i].symmetric ? "symmetric" : "ascending"));
    if (facts_[i].zeros.defined() && !facts_[i].fixed)
      notes_.push_back(fmt::format("input {} is zero at the same places in every trial, under stress too", i));
    if (!facts_[i].fixed) continue;
    notes_.push_back(fmt::format(
        "input {} has the same values in every trial: `get_inputs` draws it from no random function of PyTorch", i));
  }
}

// A program may know which elements of a mask are zero.
void ReferenceSide::note_masks() {
  const GraphUses uses(reference_.forward);
  const State given = maker_->weights(kGivenWeights);
  for (auto& parameter : reference_.parameters) {
    if (parameter.value < 0 || !parameter.is_buffer || uses.users(parameter.value).empty()) continue;
    const at::Tensor& tensor = given[static_cast<size_t>(parameter.value)];
    if (is_structured_mask(tensor))
      notes_.push_back(
          fmt::format("the buffer `{}` is a mask, with zeros at the same places in every trial", parameter.name));
    if (are_positions(tensor))
      notes_.push_back(fmt::format("the buffer `{}` holds 0, 1, 2, ... in every trial", parameter.name));
  }
}

// A program may read one of the elements that stand for many.
void ReferenceSide::note_repetitions(const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int64_t axis = 0; axis < inputs[i].dim(); ++axis) {
      if (inputs[i].stride(axis) != 0 || inputs[i].size(axis) < 2) continue;
      notes_.push_back(
          fmt::format("input {} repeats its elements along axis {} (an expanded tensor), in every trial: the verdict "
                      "holds for such inputs only",
                      i, axis));
    }
  }
}

Result<std::vector<std::shared_ptr<const Trial>>> ReferenceSide::chain() const {
  constexpr uint64_t kCalls = 4;
  if (!reads_state_ || !chain_.empty()) return chain_;
  std::vector<TrialRecipe> recipes(kCalls, recipes_[0]);
  for (uint64_t i = 0; i < kCalls; ++i) {
    recipes[i].input_seed += i * 0x9E3779B97F4A7C15;
    recipes[i].forward_seed += i;
  }
  std::vector<std::shared_ptr<const Trial>> chain;
  int64_t bytes = 0;
  for (Trial& trial : TRY(maker_->make_chain(recipes))) {
    bytes += trial.bytes();
    chain.push_back(std::make_shared<const Trial>(std::move(trial)));
  }
  if (kept_bytes_ + bytes > options_.kept_bytes) return chain;
  kept_bytes_ += bytes;
  chain_ = chain;
  return chain;
}

}  // namespace tilepilot::eval
