// Whether answers that need no computing would do: how that is found, and what it says of the task.
#include <fmt/format.h>

#include <algorithm>

#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/error_scan.h"
#include "eval/worker/truth/degeneracy.h"
#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

std::string ReferenceSide::digest_of_outputs(const Trial& trial) {
  std::string digests;
  for (auto& output : trial.outputs) digests += digest_of(output.eager) + " ";
  return digests;
}

// A gate that starts at zero closes later: what the model computes shows with weights that were drawn anew.
Result<bool> ReferenceSide::is_told_apart_by_other_weights(size_t output) const {
  constexpr size_t kOther = 1;
  if (trial_count() <= kOther || weights_of_trial(kOther) == kGivenWeights ||
      !maker_->weight_sets().has_movable_weights())
    return false;
  const auto other = TRY(trial(kOther));
  const auto measured = TRY(measure(*other, std::nullopt));
  const Allowance allowed = allowances_from(*other, {measured})[output];
  const auto found = find_triviality(other->outputs[output], allowed, measured.eager[output], other->inputs);
  return !found.by_nature;
}

Result<bool> ReferenceSide::is_constant_with_other_weights() const {
  if (!maker_->weight_sets().has_movable_weights()) return true;
  TrialRecipe recipe = recipes_[0];
  recipe.weights = kRedrawnWeights;
  const std::string one = digest_of_outputs(TRY(maker_->make_trial(recipe, {})));
  recipe.input_seed += 1;
  return one == digest_of_outputs(TRY(maker_->make_trial(recipe, {})));
}

Status ReferenceSide::find_degeneracy(const Trial& trial, const std::vector<Measured>& measured) {
  bool all_trivial = !trial.outputs.empty(), any_noise = false;
  for (size_t i = 0; i < trial.outputs.size(); ++i) {
    auto& output = trial.outputs[i];
    std::vector<ScaledError> eager = measured[0].eager[i];
    for (auto& each : measured) {
      for (size_t part = 0; part < eager.size(); ++part) eager[part] = worse(eager[part], each.eager[i][part]);
    }
    Triviality found;
    // A view of an input is a copy of it by definition.
    if (!eager.empty() && output.eager.numel() > 0 && !aliases_[i])
      found = find_triviality(output, allowances_[i], eager, trial.inputs);
    const bool by_start = found.by_nature && TRY(is_told_apart_by_other_weights(i));
    all_trivial = all_trivial && found.by_nature && !by_start;
    if (found.answer.empty()) continue;
    if (by_start) {
      notes_.push_back(fmt::format(
          "with the weights as constructed output {} cannot be told from {}; with others it can", i, found.answer));
      continue;
    }
    if (found.by_nature) {
      notes_.push_back(fmt::format("output {} cannot be told from {} within the tolerance", i, found.answer));
      any_noise = any_noise || worst_of(eager).rms > kNoise;
      continue;
    }
    allowances_[i].scaled = found.narrowed;
    allowances_[i].is_narrowed = true;
    notes_.push_back(fmt::format(
        "output {} is ill-conditioned: {} would pass, so the tolerance is narrowed to half the error of that", i,
        found.answer));
  }
  const bool same_twice =
      output_digests_.size() > 2 && !facts_.empty() && !facts_[0].fixed && output_digests_[0] == output_digests_[2];
  const bool constant = same_twice && TRY(is_constant_with_other_weights());
  if (constant) notes_.push_back("the outputs do not depend on the inputs");
  degenerate_ = all_trivial || any_noise || constant;
  return {};
}

}  // namespace tilepilot::eval
