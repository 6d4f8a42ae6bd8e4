// Stress trials: which there are, made where the model gives numbers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <algorithm>

#include "eval/graph/input_numbers.h"
#include "eval/graph/input_probes.h"
#include "eval/worker/truth/compare/error_scan.h"
#include "eval/worker/truth/reference_side.h"
#include "eval/worker/truth/stress/weight_rows.h"

namespace tilepilot::eval {

namespace {

// What this thread has worked, so that a busy machine leaves no more untried than a free one. On a GPU it waits
// instead.
class WorkTime {
 public:
  explicit WorkTime(c10::Device device) : clock_(device.is_cpu() ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}
  // `waited`: seconds since then in which others were waited for.
  double seconds(double waited) const { return now() - begin_ - (clock_ == CLOCK_MONOTONIC ? waited : 0); }

 private:
  double now() const {
    timespec time = {};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  clockid_t clock_;
  double begin_ = now();
};

// What shows usual mistakes with such operators, and is tried whatever time it takes: an epsilon of another size or at
// another place, a variance in one pass; equal elements.
std::set<StressKind> telling_kinds(const Graph& graph, bool has_jumps) {
  static const std::set<std::string_view> kDivide = {
      "layer_norm", "native_layer_norm", "group_norm",         "native_group_norm",
      "batch_norm", "instance_norm",     "rms_norm",           "var",
      "std",        "var_mean",          "std_mean",           "norm",
      "rsqrt",      "reciprocal",        "linalg_vector_norm", "cosine_similarity"};
  std::set<StressKind> kinds;
  const auto divides = [](const GraphNode& node) {
    const bool by_tensor = plain_name(node) == "div" && node.args.size() > 1 && node.args[1].value_id() != nullptr;
    return by_tensor || kDivide.count(plain_name(node)) != 0;
  };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), divides))
    kinds.insert({StressKind::small, StressKind::shifted, StressKind::faint, StressKind::zeros});
  if (has_jumps) kinds.insert({StressKind::ties, StressKind::grid});
  return kinds;
}

// What reads a weight, a buffer, a number is easily left out.
std::vector<StressPlan> plans_of_state(const WeightSets& sets, bool has_numbers) {
  std::vector<StressPlan> plans;
  if (sets.has_movable_buffers())
    plans.push_back({StressKind::buffers, {kMovedBuffers, kNearBuffers, kMovedFloatBuffers}});
  if (sets.has_counters()) plans.push_back({StressKind::buffers, {kFurtherBuffers}});
  for (int i = 0; i < sets.turning_points(); ++i) plans.push_back({StressKind::buffers, {kTurningPoint + i}});
  if (sets.has_transitions())
    for (const int set : {kNearlyThere, kHalfwayThere}) plans.push_back({StressKind::buffers, {set}});
  if (sets.has_movable_weights()) plans.push_back({StressKind::weights, {kStretchedWeights}});
  if (sets.has_bounds())
    for (const int set : {kBeyondBounds, kBelowBounds}) plans.push_back({StressKind::weights, {set}});
  if (has_numbers)
    for (auto& strengths : {std::vector{1, -1}, std::vector{510}, std::vector{-4}})
      plans.push_back({StressKind::numbers, strengths});
  return plans;
}

std::vector<StressPlan> further_plans_of_state(const WeightSets& sets) {
  std::vector<StressPlan> plans;
  if (sets.has_movable_weights())
    for (auto& strengths : {std::vector{kLargerWeights}, std::vector{kLargeWeights, kFairlyLargeWeights},
                            std::vector{kSmallWeights}, std::vector{kEmptyRows}, std::vector{kOffsetWeights}})
      plans.push_back({StressKind::weights, strengths});
  if (sets.has_movable_buffers()) plans.push_back({StressKind::buffers, {kStretchedBuffers}});
  return plans;
}

// What only some models need, and shows where nothing else does.
std::vector<StressPlan> plans_of_probes(const InputProbes& probes, const std::vector<at::Tensor>& inputs,
                                        const std::vector<InputFacts>& facts) {
  const auto varying = inputs_of_kind(StressKind::negative, inputs, facts);
  const bool narrow = std::any_of(inputs.begin(), inputs.end(),
                                  [](const at::Tensor& input) { return input.scalar_type() == at::kHalf; });
  std::vector<StressPlan> plans;
  if (varying.empty()) return plans;
  if (probes.steps > 0) plans.push_back({StressKind::halves, {probes.steps}});
  if (probes.opposite && varying.size() > 1)
    plans.push_back({StressKind::negative,
                     narrow ? std::vector{kOpposite + 6, kOpposite} : std::vector{kOpposite + 10, kOpposite + 6}});
  if (narrow) return plans;  // the other sizes are beyond float16
  if (!probes.below.empty()) plans.push_back({StressKind::negative, probes.below});
  if (!probes.above.empty()) plans.push_back({StressKind::positive, probes.above});
  if (!probes.beyond_squares.empty()) plans.push_back({StressKind::large, probes.beyond_squares});
  if (!probes.below_squares.empty()) plans.push_back({StressKind::small, probes.below_squares});
  if (!probes.beyond_integers.empty()) plans.push_back({StressKind::extreme, probes.beyond_integers});
  return plans;
}

}  // namespace

bool ReferenceSide::is_decisive(const StressTrial& stress) const {
  const auto measured = measure(*stress.trial, 0);
  if (!measured.ok()) return true;
  for (size_t i = 0; i < stress.judged.size(); ++i)
    if (stress.judged[i] && is_noise(*measured, i)) return false;
  return true;
}

// Of such inputs an output is what roundings have left.
bool ReferenceSide::is_noise(const Measured& measured, size_t output) {
  return worst_of(measured.eager[output]).rms > kNoise || worst_of(measured.sensitivity[output]).rms > kNoise;
}

// A few are always tried, more while there is time.
void ReferenceSide::find_stress_trials() const {
  constexpr int kAlways = 5;
  stress_is_known_ = true;
  const WorkTime worked(options_.device);
  auto first = trial(0);
  if (!first.ok()) return;
  StressSearch search(*maker_, facts_, {(*first)->inputs, NumberPlaces(**first)}, options_.stress_seconds);
  first->reset();
  const auto& inputs = search.given().inputs;
  std::vector<StressPlan> plans = stress_plans(inputs, facts_);
  const std::vector<StressPlan> always = plans_of_state(maker_->weight_sets(), !reference_.numbers.empty());
  for (auto& plan : further_plans_of_state(maker_->weight_sets())) plans.push_back(plan);
  if (may_be_near_weights(reference_.forward, maker_->exported_weights(), inputs, facts_))
    plans.push_back({StressKind::near, {0}});
  double waited = 0;
  for (size_t i = 0; i < reference_.variants.size(); ++i) {
    const size_t before = stress_.size();
    waited += try_plan({StressKind::numbers, {kFirstVariant + static_cast<int>(i)}}, search);
    if (stress_.size() == before)
      stress_notes_.push_back(
          fmt::format("with another value of input {} the model gives no numbers to compare: a "
                      "program may hold it as a constant",
                      reference_.variants[i].input));
  }
  std::set<StressKind> kinds;
  const auto try_one = [&](const StressPlan& plan) {
    kinds.insert(plan.kind);
    waited += try_plan(plan, search);
  };
  const bool all_open = std::find(open_.begin(), open_.end(), false) == open_.end();
  const bool changes_more = mutates_inputs_ || !judged_state_.empty();
  const bool says_something_of_equals = !all_open && (!chooses() || !changes_more);
  for (auto& plan : always) try_one(plan);
  double taken_by_telling = -worked.seconds(waited);  // is not the others' time
  for (auto& plan : plans_of_probes(input_probes(reference_.forward), inputs, facts_))
    if (!makes_equals(plan.kind) || says_something_of_equals) try_one(plan);
  taken_by_telling += worked.seconds(waited);
  const std::set<StressKind> telling = telling_kinds(reference_.forward, jumps_ || chooses());
  std::set<std::string> untried;
  int tried = 0;
  for (auto& plan : plans) {
    const bool grid = plan.kind == StressKind::grid;
    // What divides by zero shows whichever of equal elements is chosen.
    const bool is_open = makes_equals(plan.kind) && !says_something_of_equals && plan.kind != StressKind::zeros;
    if (is_open || (grid && !jumps_)) continue;
    if (plan.kind == StressKind::ends && !one_decides_) continue;
    // What follows from an input that is the same in every call is easily kept from the first one.
    const bool tells = plan.kind == StressKind::constants || telling.count(plan.kind) != 0;
    const double begin = worked.seconds(waited);
    if (tried++ < kAlways || tells || begin - taken_by_telling <= options_.stress_seconds)
      try_one(plan);
    else
      untried.insert(std::string(to_string(plan.kind)));
    if (tells) taken_by_telling += worked.seconds(waited) - begin;
  }
  std::set<std::string> without_numbers;
  for (const StressKind kind : kinds)
    if (std::none_of(stress_.begin(), stress_.end(), [&](auto& kept) { return kept.found.kind == kind; }))
      without_numbers.insert(std::string(to_string(kind)));
  if (!untried.empty()) stress_notes_.push_back(fmt::format("not tried, for time: {}", fmt::join(untried, ", ")));
  if (!without_numbers.empty())
    stress_notes_.push_back(
        fmt::format("not tried, as the model gives no numbers then: {}", fmt::join(without_numbers, ", ")));
}

// All that the kind changes, else what of it leaves the model's values finite, with the first of the strengths that
// works; else the outputs that stay finite. Gives the seconds waited.
double ReferenceSide::try_plan(const StressPlan& plan, StressSearch& search) const {
  constexpr int64_t kMostBytes = int64_t{256} << 20;  // to make larger weights, and to send them, takes long
  const WeightSets& sets = maker_->weight_sets();
  const bool may_move = sets.bytes() <= kMostBytes;
  const bool moves_weights = may_move && sets.has_movable_weights(), opens = may_move && sets.has_gates();
  const bool of_state = plan.kind == StressKind::buffers || plan.kind == StressKind::weights;
  const size_t before = stress_.size();
  double waited = 0;
  const auto recipe_with = [&](int strength) {
    TrialRecipe recipe = recipes_[0];
    recipe.input_seed += 1 + static_cast<uint64_t>(plan.kind);
    recipe.forward_seed += 1 + static_cast<uint64_t>(plan.kind);
    recipe.stress = {plan.kind, strength};
    // What gates of zero hide shows with weights that are moved a little.
    if ((moves_weights || opens) && is_of_size(plan.kind)) recipe.weights = opens ? kMovedGates : kMovedWeights;
    if (of_state) recipe.weights = strength;
    return recipe;
  };
  const auto keeps = [&](const TrialRecipe& recipe, bool in_part) {
    waited += begin_step();
    return keep_stress(recipe, search.given().places, in_part);
  };
  const auto any_keeps = [&](bool in_part) {
    return std::any_of(plan.strengths.begin(), plan.strengths.end(),
                       [&](int strength) { return keeps(recipe_with(strength), in_part); });
  };
  if (any_keeps(false)) return waited;
  if (of_state) {
    for (const int set : plan.strengths)
      if (may_move && maker_->leave_out_of(set) && keeps(recipe_with(set), false)) break;
  } else {
    std::vector<int> open = inputs_of_kind(plan.kind, search.given().inputs, facts_);
    for (const int strength : plan.strengths) {
      TrialRecipe recipe = recipe_with(strength);
      const auto kept = open.empty() ? std::nullopt : search.kept_under(recipe, open);
      if (!kept) continue;
      recipe.stress.kept = *kept;
      if (!keeps(recipe, false)) continue;
      std::erase_if(open, [&](int input) { return !is_kept(recipe.stress, input); });
    }
  }
  if (stress_.size() == before && parts_.size() > 1) any_keeps(true);
  return waited;
}

bool ReferenceSide::keep_stress(const TrialRecipe& recipe, const NumberPlaces& given, bool in_part) const {
  try {
    auto made = maker_->make_trial(recipe, facts_);
    if (!made.ok()) return false;
    const NumberPlaces places(*made);
    if (!places.are_like(given) && (!in_part || places.outputs() != given.outputs())) return false;
    auto measured = measure(*made, std::nullopt);
    if (!measured.ok()) return false;
    std::vector<bool> judged;
    for (size_t i = 0; i < made->outputs.size(); ++i)
      judged.push_back(places.is_like(given, i) && !is_noise(*measured, i));
    const auto count = static_cast<size_t>(std::count(judged.begin(), judged.end(), true));
    if (count < judged.size() && (!in_part || count == 0)) return false;
    // Other weights merge elements where they are large, or zero; else no more than the given ones do.
    const bool apart = keeps_apart(recipe.stress.kind) || recipe.weights == kStretchedWeights;
    KeptStress kept{recipe,
                    {nullptr, allowances_from(*made, {*measured}), std::move(judged), places.changes_are_like(given),
                     recipe.stress.kind, apart}};
    const int64_t bytes = made->bytes();
    if (kept_bytes_ + bytes <= options_.kept_bytes) {
      kept_bytes_ += bytes;
      kept.found.trial = std::make_shared<const Trial>(*std::move(made));
    }
    stress_.push_back(std::move(kept));
    return true;
  } catch (const std::exception&) { return false; }  // LibTorch refuses such inputs
}

size_t ReferenceSide::stress_count() const {
  if (!stress_is_known_) find_stress_trials();
  return stress_.size();
}

Result<StressTrial> ReferenceSide::stress(size_t index) const {
  StressTrial found = stress_[index].found;
  if (!found.trial) found.trial = std::make_shared<const Trial>(TRY(maker_->make_trial(stress_[index].recipe, facts_)));
  return found;
}

}  // namespace tilepilot::eval
