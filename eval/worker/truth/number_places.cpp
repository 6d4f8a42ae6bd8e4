#include "eval/worker/truth/number_places.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

namespace {

at::Tensor finite_places_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) return {};
  const at::Tensor places = tensor.isfinite();
  return places.all().item<bool>() ? at::Tensor() : places;
}

bool same_places(const at::Tensor& one, const at::Tensor& other) {
  return one.defined() == other.defined() && (!one.defined() || one.equal(other));
}

int64_t others(const at::Tensor& places) { return places.logical_not().sum().item<int64_t>(); }

}  // namespace

NumberPlaces::NumberPlaces(const Trial& trial) {
  const auto add = [&](const Expected& made, std::vector<Places>& to) {
    Places& places = to.emplace_back(Places{finite_places_of(made.eager), finite_places_of(made.truth)});
    has_truth_ = has_truth_ || made.truth.defined();
    if (places.eager.defined())
      places.others_are_minus_infinity = places.eager.logical_not().equal(made.eager.eq(-HUGE_VAL));
  };
  for (auto& output : trial.outputs) add(output, outputs_);
  for (auto& changed : trial.mutated_expected) add(changed, changes_);
  for (auto& changed : trial.state) add(changed.expected, changes_);
}

bool NumberPlaces::are_all() const {
  const auto is_whole = [](const Places& each) { return !each.eager.defined() && !each.truth.defined(); };
  return std::all_of(outputs_.begin(), outputs_.end(), is_whole) &&
         std::all_of(changes_.begin(), changes_.end(), is_whole);
}

bool NumberPlaces::same(const Places& one, const Places& other, bool with_truth) {
  return same_places(one.eager, other.eager) && (!with_truth || same_places(one.truth, other.truth));
}

bool NumberPlaces::is_like(const NumberPlaces& given, size_t output) const {
  constexpr int64_t kMore = 2;
  if (output >= given.outputs_.size()) return false;
  const bool with_truth = has_truth_ && given.has_truth_;
  const Places &here = outputs_[output], &there = given.outputs_[output];
  if (same(here, there, with_truth)) return true;
  if (!here.eager.defined() || !there.eager.defined() || here.eager.sizes() != there.eager.sizes()) return false;
  const bool truth_agrees =
      !with_truth || (here.truth.defined() && here.eager.equal(here.truth.to(here.eager.device())));
  return truth_agrees && here.others_are_minus_infinity && others(here.eager) <= kMore * others(there.eager);
}

bool NumberPlaces::changes_are_like(const NumberPlaces& given) const {
  const bool with_truth = has_truth_ && given.has_truth_;
  if (changes_.size() == given.changes_.size())
    return std::equal(changes_.begin(), changes_.end(), given.changes_.begin(),
                      [&](const Places& a, const Places& b) { return same(a, b, with_truth); });
  const auto all_numbers = [](const std::vector<Places>& of) {
    return std::none_of(of.begin(), of.end(),
                        [](const Places& each) { return each.eager.defined() || each.truth.defined(); });
  };
  return all_numbers(changes_) && all_numbers(given.changes_);
}

bool NumberPlaces::are_like(const NumberPlaces& given) const {
  if (outputs_.size() != given.outputs_.size()) return false;
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!is_like(given, i)) return false;
  return changes_are_like(given);
}

}  // namespace tilepilot::eval
