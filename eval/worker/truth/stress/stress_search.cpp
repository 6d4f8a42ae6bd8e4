#include "eval/worker/truth/stress/stress_search.h"

#include <algorithm>
#include <chrono>

namespace tilepilot::eval {

namespace {

constexpr int kMostRuns = 40;  // of the model, for one kind and strength

// Runs of true as slices along an axis.
std::vector<KeptPart> slices_without(const std::vector<bool>& change, int input, int axis) {
  std::vector<KeptPart> kept;
  for (size_t i = 0; i < change.size(); ++i) {
    if (change[i]) continue;
    const auto place = static_cast<int64_t>(i);
    if (!kept.empty() && kept.back().end == place)
      ++kept.back().end;
    else
      kept.push_back({input, axis, place, place + 1, 1});
  }
  return kept;
}

std::vector<KeptPart> with(std::vector<KeptPart> one, const std::vector<KeptPart>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

}  // namespace

bool StressSearch::fits(TrialRecipe recipe, std::vector<KeptPart> kept) {
  if (seconds_left_ <= 0) return false;
  recipe.stress.kept = std::move(kept);
  const auto begin = std::chrono::steady_clock::now();
  const bool fit = [&] {
    try {
      const auto trial = maker_.run_eager(recipe, facts_);
      return trial.ok() && NumberPlaces(*trial).are_like(given_.places);
    } catch (const std::exception&) { return false; }  // LibTorch refuses such inputs
  }();
  seconds_left_ -= std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return fit;
}

// Slices along one axis, the last one first, or every so manieth element along it. Of an input that has a form, all:
// what is sorted again stands elsewhere.
std::vector<KeptPart> StressSearch::kept_of(const TrialRecipe& recipe, int input, const std::vector<KeptPart>& others,
                                            int& runs) {
  constexpr double kEnough = 1.0 / 8;  // of an axis
  constexpr int64_t kSteps[] = {2, 3, 4};
  const at::Tensor& tensor = given_.inputs[static_cast<size_t>(input)];
  const InputFacts& facts = facts_[static_cast<size_t>(input)];
  const std::vector<KeptPart> all = {{.input = input}};
  if (facts.ascending || facts.symmetric || !tensor.is_floating_point()) return all;
  std::vector<int> axes;
  for (int axis = static_cast<int>(tensor.dim()) - 1; axis >= 0; --axis)
    if (tensor.size(axis) > 1 && tensor.stride(axis) != 0) axes.push_back(axis);
  for (const int axis : axes) {
    const auto size = static_cast<size_t>(tensor.size(axis));
    const auto change = largest_that_fits(size, runs, [&](const std::vector<bool>& some) {
      return fits(recipe, with(slices_without(some, input, axis), others));
    });
    const auto changed = static_cast<double>(std::count(change.begin(), change.end(), true));
    if (changed >= kEnough * static_cast<double>(size)) return slices_without(change, input, axis);
  }
  for (const int axis : axes)
    for (const int64_t step : kSteps) {
      if (tensor.size(axis) % step != 0 || tensor.size(axis) == step) continue;
      const auto left = [&](const std::vector<bool>& change) {
        std::vector<KeptPart> kept;
        for (int64_t i = 0; i < step; ++i)
          if (!change[static_cast<size_t>(i)]) kept.push_back({input, axis, i, tensor.size(axis), step});
        return kept;
      };
      const auto change = largest_that_fits(static_cast<size_t>(step), runs, [&](const std::vector<bool>& some) {
        return fits(recipe, with(left(some), others));
      });
      if (std::find(change.begin(), change.end(), true) != change.end()) return left(change);
    }
  return all;
}

std::optional<std::vector<KeptPart>> StressSearch::kept_under(TrialRecipe recipe, const std::vector<int>& open) {
  std::vector<KeptPart> others;  // whole inputs
  for (int i = 0; i < static_cast<int>(given_.inputs.size()); ++i)
    if (std::find(open.begin(), open.end(), i) == open.end()) others.push_back({.input = i});
  // Alone, where others have been changed before; else roundings are all that is left, not infinities.
  if (fits(recipe, others)) return others.empty() ? std::nullopt : std::optional(others);
  for (auto& kept : known_)
    if (auto all = with(kept, others); fits(recipe, all)) return all;
  int runs = kMostRuns;
  const auto left = [&](const std::vector<bool>& change) {
    std::vector<KeptPart> kept = others;
    for (size_t i = 0; i < open.size(); ++i)
      if (!change[i]) kept.push_back({.input = open[i]});
    return kept;
  };
  std::vector<bool> change(open.size());
  if (open.size() > 1)
    change =
        largest_that_fits(open.size(), runs, [&](const std::vector<bool>& some) { return fits(recipe, left(some)); });
  std::vector<KeptPart> kept = left(change);
  bool any = std::find(change.begin(), change.end(), true) != change.end();
  for (size_t i = 0; i < open.size() && runs > 0; ++i) {
    if (change[i]) continue;
    std::erase_if(kept, [&](const KeptPart& part) { return part.input == open[i]; });
    const auto parts = kept_of(recipe, open[i], kept, runs);
    any = any || parts.empty() || !parts[0].is_whole();
    kept = with(std::move(kept), parts);
  }
  if (!any) return std::nullopt;
  known_.push_back(kept);
  return kept;
}

}  // namespace tilepilot::eval
