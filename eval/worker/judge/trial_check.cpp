#include "eval/worker/judge/trial_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eval/torch/element_type.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/call_check.h"
#include "eval/worker/judge/returned_form.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/output_structure.h"

namespace tilepilot::eval {

using nlohmann::json;

std::vector<std::vector<int64_t>> strides_of(const json& description) {
  std::vector<std::vector<int64_t>> strides;
  for (auto& node : description) strides.push_back(node.at("strides").get<std::vector<int64_t>>());
  return strides;
}

static bool are_finite(const at::Tensor& tensor) { return tensor.isfinite().all().item<bool>(); }

std::optional<TrialFailure> TrialCheck::check(int number, const Trial& trial, const Message& answer) {
  number_ = number;
  trial_ = &trial;
  compares_integers_ = compares_changes_ = true;
  auto& body = answer.body;
  low_precision_ = body.at("low_precision").get<std::map<std::string, std::string>>();
  Parts parts;
  if (auto failure = take_apart(trial, answer, parts)) return failure;
  const auto strides = strides_of(body.at("tensors"));
  for (size_t i = 0; i < parts.match.tensors.size(); ++i) {
    if (auto failure = check_output({i, parts.match.tensors[i]}, {parts.tensors, strides})) return failure;
  }
  if (auto failure = check_inputs(body, parts.tensors, parts.outputs)) return failure;
  if (auto failure = check_state(parts)) return failure;
  if (auto failure = check_weights(body.at("changed_weights"))) return failure;
  ++verdict_.guards_run["reused_memory"];
  if (body.at("earlier_changed").get<bool>()) return TrialFailure{Outcome::rejected, kReusesMemory, "reused_memory"};
  return check_aliases(body.at("aliases"), parts.match.tensors);
}

std::string TrialCheck::wrong_under(const StressTrial& stress, const Message& answer) {
  const Trial& trial = *stress.trial;
  number_ = kStress;
  trial_ = &trial;
  compares_integers_ = stress.keeps_apart || !side_.chooses();
  compares_changes_ = stress.judges_changes;
  auto& body = answer.body;
  Parts parts;
  if (auto failure = take_apart(trial, answer, parts)) return failure->detail;
  const auto strides = strides_of(body.at("tensors"));
  std::string wrong;
  for (size_t i = 0; wrong.empty() && i < parts.match.tensors.size(); ++i) {
    const bool is_floating = trial.outputs[i].eager.is_floating_point();
    const bool may_be_chosen = may_make_equals(stress.kind) || (!is_floating && !stress.keeps_apart);
    if (!stress.judged[i]) continue;
    const size_t actual = parts.match.tensors[i];
    if (side_.is_open(i) && may_be_chosen) {
      // Whichever of equals is chosen: where the model gives numbers alone, so does the program.
      const bool are_numbers = !is_floating || !are_finite(trial.outputs[i].eager) || are_finite(parts.tensors[actual]);
      if (!are_numbers) wrong = fmt::format("output {}: infinite or NaN, where the model gives numbers", i);
      continue;
    }
    const auto comparison =
        side_.compare_closely({parts.tensors[actual], strides[actual]}, trial, i, stress.allowances[i]);
    if (comparison.outcome != Outcome::verified) wrong = fmt::format("output {}: {}", i, comparison.detail);
  }
  Failure failure;
  if (wrong.empty()) failure = check_inputs(body, parts.tensors, parts.outputs);
  if (wrong.empty() && !failure) failure = check_state(parts);
  if (wrong.empty() && !failure) failure = check_weights(body.at("changed_weights"));
  if (wrong.empty() && !failure) failure = check_aliases(body.at("aliases"), parts.match.tensors);
  if (failure) wrong = failure->detail;
  return wrong.empty() || side_.is_decisive(stress) ? wrong : "";
}

std::optional<TrialFailure> TrialCheck::take_apart(const Trial& trial, const Message& answer, Parts& parts) const {
  auto& body = answer.body;
  parts.match = match_structure(side_.reference().forward, body.at("structure"));
  if (!parts.match.mismatch.empty()) return TrialFailure{Outcome::wrong_shape, parts.match.mismatch};
  auto tensors = link_.tensors_of(answer);
  parts.outputs = body.at("outputs");
  parts.state = body.at("state").get<std::vector<std::string>>();
  parts.state_aliases = body.at("state_aliases").get<std::vector<std::string>>();
  if (parts.state_aliases.size() != parts.state.size())
    return TrialFailure{Outcome::rejected, "outputs did not arrive whole", "protocol"};
  if (!tensors.ok()) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Expected& output : trial.outputs) shapes.push_back(output.eager.sizes().vec());
    Verdict verdict = not_received(tensors.error(), body.at("tensors"), {parts.match, std::move(shapes)});
    return TrialFailure{verdict.outcome, std::move(verdict.detail), std::move(verdict.guard)};
  }
  if (tensors->size() != parts.outputs + trial.mutated.size() + parts.state.size())
    return TrialFailure{Outcome::rejected, "outputs did not arrive whole", "protocol"};
  parts.tensors = *std::move(tensors);
  return std::nullopt;
}

std::optional<TrialFailure> TrialCheck::check_output(const Place& place, const Returned& returned) {
  const Expected& expected = trial_->outputs[place.expected];
  const CandidateOutput actual{returned.tensors[place.actual], returned.strides[place.actual]};
  auto comparison = side_.compare_closely(actual, *trial_, place.expected, side_.allowance(place.expected));
  comparison.error.trial = number_;
  comparison.error.output = static_cast<int>(place.expected);
  verdict_.errors.push_back(comparison.error);
  const std::string which = trial_->outputs.size() > 1 ? fmt::format("output {}", place.expected) : "the output";
  if (comparison.outcome == Outcome::verified) {
    if (!comparison.note.empty() && number_ == 0)
      verdict_.notes.push_back(fmt::format("{} {}", which, comparison.note));
    return std::nullopt;
  }
  const std::string when = trial_->weights != 0 && number_ == 1 ? " (with other weights than at construction)" : "";
  const bool form = comparison.outcome != Outcome::wrong_values && comparison.outcome != Outcome::not_finite;
  hint_at_precision(comparison, actual.tensor, expected);
  if (const int64_t unwritten = unwritten_elements(actual.tensor, facts_.memory); unwritten > 0)
    verdict_.notes.push_back(
        fmt::format("{} elements of {} hold what memory held that nobody wrote", unwritten, which));
  std::string detail = fmt::format("{}{} {}{}", which, form ? "" : " is wrong:", comparison.detail, when);
  if (comparison.outcome != Outcome::wrong_values || facts_.lacking.empty())
    return TrialFailure{comparison.outcome, std::move(detail)};
  return TrialFailure{
      Outcome::weights_mismatch,
      fmt::format("the candidate's weights are not the model's: it lacks {}; {}", facts_.lacking, detail)};
}

// Programs written for 16 bit are judged in the model's float32 unless the user says otherwise.
void TrialCheck::hint_at_precision(const Comparison& comparison, const at::Tensor& actual, const Expected& expected) {
  constexpr double kRoundings = 0.02;  // an error that roundings to float16 explain
  const bool values = comparison.outcome == Outcome::wrong_values || comparison.outcome == Outcome::not_finite;
  if ((!values && comparison.outcome != Outcome::wrong_dtype) || side_.is_asked_in_16_bit()) return;
  if (expected.eager.scalar_type() != at::kFloat) return;
  std::string why;
  at::ScalarType type = actual.scalar_type() == at::kBFloat16 ? at::kBFloat16 : at::kHalf;
  if (actual.scalar_type() == type) {
    why = fmt::format("the output is {}", element_type_name(type));
  } else if (!low_precision_.empty()) {
    auto& [kernel, element_type] = *low_precision_.begin();
    why = fmt::format("the kernel `{}` works on {}", kernel, element_type);
    type = element_type == "bfloat16" ? at::kBFloat16 : at::kHalf;
  } else if (comparison.outcome == Outcome::wrong_values && comparison.error.max_rel < kRoundings &&
             actual.to(at::kHalf).to(at::kFloat).equal(actual)) {
    why = "every element of the output is a float16 number";
  }
  if (why.empty()) return;
  verdict_.notes.push_back(fmt::format("{} and the model's is float32: if that is meant, judge with `--dtype {}`", why,
                                       type == at::kHalf ? "fp16" : "bf16"));
}

// Inputs stay as they were, or become what the model makes of them.
std::optional<TrialFailure> TrialCheck::check_inputs(const json& body, const std::vector<at::Tensor>& tensors,
                                                     size_t outputs) const {
  auto& digests = body.at("input_digests");
  for (size_t i = 0; i < trial_->inputs.size(); ++i) {
    const bool same = digests.at(i) == digest_of(trial_->inputs[i]);
    auto found = std::find(trial_->mutated.begin(), trial_->mutated.end(), i);
    if (same && found == trial_->mutated.end()) continue;
    if (same) return TrialFailure{Outcome::mutated_input, fmt::format(kLeftAlone, i)};
    if (found == trial_->mutated.end())
      return TrialFailure{Outcome::mutated_input, fmt::format("input {} was changed", i)};
    const auto which = static_cast<size_t>(found - trial_->mutated.begin());
    auto& expected = trial_->mutated_expected[which];
    if (!compares_changes_ || (!expected.eager.is_floating_point() && !compares_integers_)) continue;
    const std::vector<int64_t> strides = expected.eager.strides().vec();
    auto comparison = compare({tensors[outputs + which], strides}, expected, side_.allowance_of_changed(expected));
    if (comparison.outcome != Outcome::verified) {
      return TrialFailure{Outcome::mutated_input,
                          fmt::format("input {} was changed otherwise than the model does: {}", i, comparison.detail)};
    }
  }
  return std::nullopt;
}

// What the model leaves as it is, a candidate must.
std::optional<TrialFailure> TrialCheck::check_weights(const std::vector<std::string>& changed) const {
  for (auto& name : changed) {
    const bool model_too = std::any_of(trial_->state.begin(), trial_->state.end(),
                                       [&](const ChangedState& each) { return each.name == name; });
    if (!model_too)
      return TrialFailure{Outcome::wrong_values,
                          fmt::format("the call changed `{}`, which the model leaves as it is", name)};
  }
  return std::nullopt;
}

// Buffers and parameters that the model changes, by name. A candidate may do without them.
std::optional<TrialFailure> TrialCheck::check_state(const Parts& parts) {
  const std::vector<std::string>& names = parts.state;
  const std::vector<at::Tensor> tensors = parts.buffers();
  std::vector<std::string> missing;
  std::optional<std::map<size_t, at::Tensor>> noise;  // once something is wrong
  for (auto& changed : trial_->state) {
    const auto found = std::find(names.begin(), names.end(), changed.name);
    if (found == names.end()) {
      if (changed.is_read)
        return TrialFailure{Outcome::wrong_values,
                            fmt::format("the model changes {} and reads it in the next call; the candidate does not "
                                        "have it",
                                        changed.described())};
      missing.push_back(changed.name);
      continue;
    }
    const size_t place = static_cast<size_t>(found - names.begin());
    if (const std::string& alias = parts.state_aliases[place]; !alias.empty() && !changed.is_input)
      return TrialFailure{Outcome::rejected,
                          fmt::format("after the call {} shares its memory with {}, where the model keeps a copy: it "
                                      "changes with what is written there next",
                                      changed.described(), alias),
                          "aliasing"};
    if (!compares_changes_ || (!changed.expected.eager.is_floating_point() && !compares_integers_)) continue;
    const at::Tensor& tensor = tensors[place];
    const auto strides = changed.expected.eager.strides().vec();
    auto comparison = compare({tensor, strides}, changed.expected, side_.allowance_of_changed(changed.expected));
    if (comparison.outcome == Outcome::wrong_values) {
      if (!noise) noise = side_.state_noise(*trial_);
      comparison = compare({tensor, strides}, changed.expected,
                           side_.allowance_of_changed(changed.expected, (*noise)[changed.value]));
    }
    if (comparison.outcome == Outcome::verified) continue;
    const std::string what = fmt::format("{}, which the model changes, is not what the model makes of it: {}",
                                         changed.described(), comparison.detail);
    if (!changed.is_told_only()) return TrialFailure{Outcome::wrong_values, what};
    if (number_ == 0) verdict_.notes.push_back(what);
  }
  if (!missing.empty() && number_ == 0)
    verdict_.notes.push_back(
        fmt::format("the model changes `{}`, which the candidate does not have: what reads it "
                    "later (evaluation mode, `state_dict`) differs",
                    fmt::join(missing, "`, `")));
  return std::nullopt;
}

std::optional<TrialFailure> TrialCheck::check_aliases(const json& aliases, const std::vector<size_t>& tensors) {
  ++verdict_.guards_run["aliasing"];
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto alias = aliases.at(tensors[i]).get<std::string>();
    if (alias.empty() || side_.output_may_alias(i)) continue;
    return TrialFailure{Outcome::rejected, fmt::format("output {} shares its memory with {}", i, alias), "aliasing"};
  }
  return std::nullopt;
}

}  // namespace tilepilot::eval
