#include "eval/worker/truth/stress/weight_sets.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "eval/worker/truth/stress/transitions.h"
#include "eval/worker/truth/stress/value_draws.h"

namespace tilepilot::eval {

namespace {

constexpr int kMostRunsOfModel = 32;  // of the model, to find out which values may change

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

int64_t bytes_of(const State& state) {
  int64_t bytes = 0;
  for (auto& tensor : state) bytes += tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
  return bytes;
}

}  // namespace

std::vector<bool> largest_that_fits(size_t count, int& calls, const FitsTogether& fits) {
  std::vector<bool> change(count);
  const auto set = [&](size_t begin, size_t end, bool to) {
    std::fill(change.begin() + static_cast<std::ptrdiff_t>(begin), change.begin() + static_cast<std::ptrdiff_t>(end),
              to);
  };
  const std::function<void(size_t, size_t)> add = [&](size_t begin, size_t end) {
    if (begin == end || calls-- <= 0) return;
    set(begin, end, true);
    if (fits(change)) return;
    set(begin, end, false);
    if (end - begin == 1) return;
    const size_t middle = begin + (end - begin) / 2;
    add(begin, middle);
    add(middle, end);
  };
  // All at once were tried before.
  add(0, count / 2);
  add(count / 2, count);
  return change;
}

WeightSets::WeightSets(const Reference& reference, State given, Options options)
    : reference_(reference), options_(options), given_(std::move(given)) {}

int64_t WeightSets::bytes() const { return bytes_of(given_); }

bool WeightSets::is_of_buffers(int set) { return rule_of(kBufferMoves, set) != nullptr || set >= kTurningPoint; }

bool WeightSets::has_movable_weights() const {
  return std::any_of(reference_.parameters.begin(), reference_.parameters.end(),
                     [](auto& each) { return each.value >= 0 && (!each.is_buffer || is_variance(each.name)); });
}

bool WeightSets::has_counters() const { return !counters_of(reference_.forward, given_).empty(); }

int WeightSets::turning_points() const {
  constexpr size_t kMost = 4;
  size_t count = 0;
  for (auto& [value, points] : turning_points_) count = std::max(count, points.size());
  return static_cast<int>(std::min(count, kMost));
}

Unmoved WeightSets::unmoved_in(int set) const {
  Unmoved unmoved = unmoved_;
  if (const auto found = unmoved_in_.find(set); found != unmoved_in_.end())
    unmoved.insert(found->second.begin(), found->second.end());
  return unmoved;
}

State WeightSets::make(int set) const {
  const BufferMove* move = rule_of(kBufferMoves, set);
  const bool on_host = options_.device.is_cpu();
  if (!on_host && !given_on_device_) given_on_device_ = copy_state(given_, false, options_.device);
  const State& given = on_host ? given_ : *given_on_device_;
  if (set == kGivenWeights || (reference_.parameters.empty() && !move)) return given;
  if (auto kept = kept_.find(set); kept != kept_.end()) return kept->second;
  const Graph& graph = reference_.forward;
  const Unmoved unmoved = unmoved_in(set);
  const uint64_t seed = options_.seed;
  State made;
  if (set == kNearlyThere || set == kHalfwayThere) {
    made = copy_state(given, false, options_.device);
    for (auto& [value, steps] : steps_to_the_end_) made[value].add_(set == kNearlyThere ? steps : steps / 2);
  } else if (set >= kTurningPoint) {
    made = copy_state(given, false, options_.device);
    for (auto& [value, points] : turning_points_)
      made[value].fill_(points[static_cast<size_t>(set - kTurningPoint) % points.size()]);
  } else if (move) {
    constexpr int64_t kSteps = 3;  // a place in a ring that one count hides another one shows
    made = moved_buffers(graph, given, seed + 2, *move, unmoved);
    if (set == kFurtherBuffers)
      for (const size_t value : counters_of(graph, given)) made[value].add_(kSteps);
  } else if (set == kMovedWeights || set == kMovedGates) {
    made = perturbed_weights(graph, given, seed, unmoved);
    if (set == kMovedGates) made = moved_buffers(graph, made, seed + 2, BufferMove::gates, unmoved);
  } else {
    made = redrawn_weights(graph, given, seed + 1, unmoved);
    if (const Stretch* stretch = rule_of(kStretches, set))
      made = stretched_weights(graph, made, seed + static_cast<uint64_t>(set), *stretch, unmoved);
    if (set == kBeyondBounds || set == kBelowBounds) move_beyond_bounds(made, set, unmoved);
  }
  keep(set, made);
  return made;
}

// Half of the elements are beside a bound, on either side; exactly there roundings decide.
void WeightSets::move_beyond_bounds(State& made, int set, const Unmoved& unmoved) const {
  constexpr int64_t kFew = 8;
  constexpr double kFar = 0.5, kLeast = 0.125;
  for (auto& [value, bounds] : bounds_) {
    at::Tensor& weight = made[value];
    if (unmoved.count(value) != 0 || !weight.defined() || weight.numel() == 0) continue;
    const auto beside = [&](double bound, bool above) {
      return bound + (above ? 1 : -1) * (kFar * std::abs(bound) + kLeast);
    };
    if (weight.numel() < kFew) {
      const bool above = set == kBeyondBounds;
      weight.fill_(beside(above ? bounds.back() : bounds.front(), above));
      continue;
    }
    std::vector<double> numbers;
    for (const double bound : bounds)
      for (const bool above : {false, true}) numbers.push_back(beside(bound, above));
    Draws draws(weight, options_.seed + value + static_cast<uint64_t>(set));
    const at::Tensor which = draws.integers(0, static_cast<int64_t>(numbers.size()) - 1).flatten();
    const at::Tensor all = at::tensor(numbers, at::dtype(at::kDouble).device(weight.device()));
    const at::Tensor chosen = all.index_select(0, which).reshape(weight.sizes()).to(weight.scalar_type());
    weight.copy_(at::where(draws.uniform().lt(0.5), chosen, weight));
  }
}

void WeightSets::keep(int set, const State& weights) const {
  int64_t bytes = bytes_of(weights);
  for (auto& [other, kept] : kept_) bytes += bytes_of(kept);
  if (bytes <= options_.kept_bytes) kept_.emplace(set, weights);
}

std::vector<size_t> WeightSets::changed_by(int set) const {
  return is_of_buffers(set) ? movable_buffers(reference_.forward, given_) : movable_weights(reference_.forward, given_);
}

void WeightSets::find_unmoved(int set, const Fits& fits, Unmoved& unmoved) {
  int runs_left = kMostRunsOfModel;
  std::vector<size_t> open;
  for (const size_t value : changed_by(set))
    if (unmoved_.count(value) == 0 && unmoved.count(value) == 0) open.push_back(value);
  const Unmoved before = unmoved;
  const auto leave_out = [&](const std::vector<bool>& change) {
    unmoved = before;
    for (size_t i = 0; i < open.size(); ++i)
      if (!change[i]) unmoved.insert(open[i]);
    kept_.clear();
  };
  leave_out(largest_that_fits(open.size(), runs_left, [&](const std::vector<bool>& change) {
    leave_out(change);
    return fits(set);
  }));
}

std::string WeightSets::leave_out_unfit(const Fits& fits) {
  for (const int set : {kRedrawnWeights, kMovedWeights})
    if (!fits(set) && fits(kGivenWeights)) find_unmoved(set, fits, unmoved_);
  if (unmoved_.empty()) return "";
  std::vector<std::string> names;
  for (const size_t value : unmoved_) names.push_back(reference_.forward.values[value].name);
  constexpr size_t kMost = 4;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  return fmt::format("with other values of `{}`{} the model gives no numbers: they are as constructed in every trial",
                     fmt::join(names, "`, `"), count > kMost ? fmt::format(" and {} more", count - kMost) : "");
}

bool WeightSets::leave_out_of(int set, const Fits& fits) {
  if (set == kNearlyThere || set == kHalfwayThere || set >= kTurningPoint) return false;  // counters alone change
  Unmoved& unmoved = unmoved_in_[set];
  if (fits(set)) return true;
  find_unmoved(set, fits, unmoved);
  const std::vector<size_t> all = changed_by(set);
  return std::any_of(all.begin(), all.end(),
                     [&, left = unmoved_in(set)](size_t value) { return left.count(value) == 0; });
}

}  // namespace tilepilot::eval
