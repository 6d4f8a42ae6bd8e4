#include "eval/worker/candidate/weight_transfer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/host/edge.h"
#include "eval/torch/span.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

// Other values, to see what depends on them. Draws from a generator of its own: the constructor's must not notice.
// `integers`: those change their places, so that indices stay inside what they are for.
std::vector<at::Tensor> moved(const std::vector<ModelWeight>& weights, bool integers) {
  auto generator = at::detail::createCPUGenerator(1);
  std::vector<at::Tensor> values;
  for (auto& weight : weights) {
    if (!weight.tensor.is_floating_point()) {
      const bool moves = integers && weight.tensor.layout() == at::kStrided && weight.tensor.numel() > 1;
      values.push_back(moves ? weight.tensor.reshape({-1}).roll(1).reshape(weight.tensor.sizes()) : weight.tensor);
      continue;
    }
    auto noise = at::empty(weight.tensor.sizes(), at::kFloat).uniform_(0.25, 0.5, generator);
    values.push_back(weight.tensor.to(at::kFloat).mul(noise.add(1)).add(noise).to(weight.tensor.scalar_type()));
  }
  return values;
}

std::string listed_names(const std::vector<HeldTensor>& held, const std::vector<size_t>& which) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < which.size() && i < kShown; ++i) {
    text += fmt::format("{}`{}`", i ? ", " : "", held[which[i]].name);
  }
  return which.size() > kShown ? fmt::format("{} and {} more", text, which.size() - kShown) : text;
}

void write(const at::Tensor& held, const at::Tensor& value) {
  // Elements that an expanded axis repeats cannot be written.
  without_repetitions(held, held).copy_(without_repetitions(value.reshape(held.sizes()), held));
}

}  // namespace

WeightTransfer::WeightTransfer(Construction first, const ConstructionRecord& record, std::vector<ModelWeight> weights,
                               Rebuild rebuild)
    : first_(std::move(first)), weights_(std::move(weights)), rebuild_(std::move(rebuild)) {
  WeightMatcher matcher(first_.held, weights_);
  matcher.match_all_names();
  matcher.match_numbers();
  find_followers(matcher, record);
  // What was drawn and then put into another form is held by what follows from it.
  for (auto& birth : record.births()) matcher.take_weight(birth.weight);
  size_t before = matcher.pairs().size();
  matcher.match_rest();
  if (matcher.pairs().size() > before) find_followers(matcher, record);
  pairs_ = matcher.pairs();
  for (auto& pair : pairs_) holders_.emplace(weights_[pair.weight].name, first_.held[pair.held].name);
  mismatch_ = matcher.mismatch();
  lacking_ = matcher.lacking();
  notes_ = matcher.notes();
  if (!followers_.empty()) {
    notes_.push_back(
        fmt::format("computed from the weights in `__init__`, and made anew by the judge when it changes "
                    "them, as `load_state_dict` would not: {}",
                    listed_names(first_.held, followers_)));
    remember_first_values();
  }
  if (!repeatable_) {
    notes_.emplace_back(
        "`__init__` does not run the same way twice: what it computes from the weights stays as it was when the judge "
        "changes them");
  }
}

// Builds again with other weights and looks which tensors follow from them: those that are left and change, and those
// that were taken for a weight by their numbers and are something else now (`bias - mean` while the mean is zero).
void WeightTransfer::find_followers(WeightMatcher& matcher, const ConstructionRecord& record) {
  const auto is_guess = [](const WeightPair& pair) {
    return pair.evidence == Evidence::numbers || pair.evidence == Evidence::constant;
  };
  std::vector<size_t> left;
  std::vector<WeightPair> guesses;
  for (size_t i = 0; i < first_.held.size(); ++i) {
    auto& tensor = first_.held[i].tensor;
    if (!matcher.is_taken(i) && tensor.numel() > 0) left.push_back(i);
  }
  births_ = record.births();
  for (auto& pair : matcher.pairs()) {
    if (is_guess(pair) && first_.held[pair.held].tensor.is_floating_point()) guesses.push_back(pair);
    auto birth = record.last_write(first_.unconverted[pair.held], pair.weight);
    if (!birth) continue;
    if (is_guess(pair)) birth->numbers = first_.unconverted[pair.held];
    births_.push_back(*birth);
  }
  if ((left.empty() && guesses.empty()) || births_.empty() || !repeatable_) return;
  const bool has_integers = std::any_of(births_.begin(), births_.end(), [&](const Birth& birth) {
    return !weights_[birth.weight].tensor.is_floating_point();
  });
  auto values = moved(weights_, has_integers);
  auto again = tensors_with(values);
  if (again.empty() && has_integers) {  // the constructor may need them in their order
    values = moved(weights_, false);
    again = tensors_with(values);
  }
  repeatable_ = !again.empty();
  if (!repeatable_) return;
  for (const WeightPair& pair : guesses) {
    const at::Tensor &made = again[pair.held], &weight = values[pair.weight];
    const bool is_born =
        std::any_of(births_.begin(), births_.end(), [&](const Birth& birth) { return birth.weight == pair.weight; });
    if (!is_born) continue;
    const bool is_weight = same_numbers(made, weight) || same_numbers(weight, made);
    if (is_weight || digest_of(made) == digest_of(first_.held[pair.held].tensor)) continue;
    followers_.push_back(pair.held);
    matcher.unpair(pair.held);
  }
  for (size_t i : left) {
    if (digest_of(again[i]) == digest_of(first_.held[i].tensor)) continue;
    followers_.push_back(i);
    matcher.take_held(i);
  }
}

// Where every weight was drawn as the model's, what was computed from them is what it should be.
void WeightTransfer::remember_first_values() {
  for (auto& pair : pairs_) {
    auto &held = first_.held[pair.held].tensor, &weight = weights_[pair.weight].tensor;
    if (held.is_floating_point() ? !same_numbers(held, weight) : !held.reshape({-1}).equal(weight.reshape({-1}))) {
      return;
    }
  }
  for (size_t i : followers_) follower_values_[0].push_back(first_.held[i].tensor.clone());
}

std::vector<at::Tensor> WeightTransfer::tensors_with(const std::vector<at::Tensor>& values) {
  ConstructionReplay replay(births_, values);
  auto again = [&] {
    ConstructionWatch watch(replay);
    return rebuild_();
  }();
  if (!again.ok() || !replay.complete() || again->held.size() != first_.held.size()) return {};
  births_ = replay.done();
  for (Birth& birth : births_) birth.numbers = at::Tensor();  // they are overwritten soon
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < again->held.size(); ++i) {
    auto &old = first_.held[i], &made = again->held[i];
    bool same = old.name == made.name && old.tensor.sizes() == made.tensor.sizes() &&
                old.tensor.scalar_type() == made.tensor.scalar_type();
    if (!same) return {};
    tensors.push_back(made.tensor);
  }
  return tensors;
}

void WeightTransfer::remember_memory() {
  memory_.clear();
  for (auto& held : first_.held) memory_.push_back(held.tensor.detach());
}

void WeightTransfer::restore_memory() {
  for (size_t i = 0; i < memory_.size(); ++i) {
    at::Tensor& held = first_.held[i].tensor;
    if (held.layout() != at::kStrided || memory_[i].layout() != at::kStrided) continue;
    const bool same = held.is_alias_of(memory_[i]) && held.sizes() == memory_[i].sizes() &&
                      held.strides() == memory_[i].strides() && held.storage_offset() == memory_[i].storage_offset();
    if (!same) held.set_data(memory_[i]);
  }
}

Status WeightTransfer::load(int set, const std::vector<at::Tensor>& values) {
  if (!followers_.empty() && repeatable_ && follower_values_.count(set) == 0) {
    auto again = tensors_with(values);
    repeatable_ = !again.empty();
    for (size_t i : followers_) {
      if (repeatable_) follower_values_[set].push_back(again[i].clone());
    }
  }
  return guarded("weights", {0, 0, 0}, [&] {
    at::NoGradGuard no_grad;
    restore_memory();
    for (auto& pair : pairs_) write(first_.held[pair.held].tensor, values[pair.weight]);
    auto found = follower_values_.find(set);
    if (found == follower_values_.end()) return;
    for (size_t i = 0; i < followers_.size(); ++i) write(first_.held[followers_[i]].tensor, found->second[i]);
  });
}

const std::string* WeightTransfer::holder_of(const std::string& weight) const {
  const auto found = holders_.find(weight);
  return found == holders_.end() ? nullptr : &found->second;
}

}  // namespace tilepilot::eval
