#include "eval/worker/judge/call_check.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>

#include "eval/torch/element_type.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/returned_form.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/output_structure.h"

namespace tilepilot::eval {
namespace {

// Eager's answer in the place of the truth.
Expected by_eager(const at::Tensor& output) { return {output, output, {}}; }

std::string which_output(size_t index, size_t count) {
  return count > 1 ? fmt::format("output {}", index) : "the output";
}

Verdict failed(Outcome outcome, std::string detail) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.detail = std::move(detail);
  return verdict;
}

}  // namespace

Verdict rejection(std::string guard, std::string detail) {
  Verdict verdict = failed(Outcome::rejected, std::move(detail));
  verdict.guard = std::move(guard);
  return verdict;
}

Result<CallCheck::Returned> CallCheck::open(const CandidateLink& link, const Message& answer) {
  Returned returned{answer, TRY(link.tensors_of(answer)), {}};
  for (auto& node : answer.body.at("tensors")) returned.strides.push_back(node.at("strides"));
  return returned;
}

std::optional<Verdict> CallCheck::check(const CallToCheck& call, const CandidateLink& link,
                                        const Message& answer) const {
  const auto returned = open(link, answer);
  if (!returned.ok()) return not_opened(call, returned.error(), answer);
  // Memory that is used again shows as a wrong answer too, and an old answer as memory that is used again: the trap
  // knows which.
  const auto failure = check_outputs(call, *returned);
  if (failure && failure->guard == "remembers") return failure;
  if (answer.body.at("earlier_changed").get<bool>()) return rejection("reused_memory", kReusesMemory);
  return failure ? failure : check_inputs(call, *returned);
}

Verdict CallCheck::not_opened(const CallToCheck& call, const Diagnostic& error, const Message& answer) const {
  const auto match = match_structure(side_.reference().forward, answer.body.at("structure"));
  std::vector<std::vector<int64_t>> shapes;
  for (const at::Tensor& output : call.eager.outputs[call.call]) shapes.push_back(output.sizes().vec());
  Verdict verdict = not_received(error, answer.body.at("tensors"), {match, std::move(shapes)});
  return verdict.outcome == Outcome::wrong_shape
             ? rejection("inconsistent", "another call returned something else: " + verdict.detail)
             : verdict;
}

bool CallCheck::gives_the_same(const CallToCheck& call, const CandidateLink& link, const Message& answer) const {
  constexpr double kGross = 8;  // allowances between an answer and eager's: no truth lies near both
  const auto returned = open(link, answer);
  if (!returned.ok()) return false;
  const auto match = match_structure(side_.reference().forward, answer.body.at("structure"));
  if (!match.mismatch.empty()) return false;
  for (size_t i = 0; i < match.tensors.size(); ++i) {
    const size_t place = match.tensors[i];
    if (place >= returned->tensors.size()) return false;
    if (!passes({returned->tensors[place], returned->strides[place]}, by_eager(call.eager.outputs[call.call][i]),
                side_.allowance(i).times(kGross)))
      return false;
  }
  return !check_outputs(call, *returned);
}

std::string CallCheck::fault_of(const CallToCheck& call, const std::vector<at::Tensor>& outputs) const {
  auto& eager = call.eager.outputs[call.call];
  auto& batch = call.planned.batch;
  if (outputs.size() != eager.size()) return fmt::format("there are {} outputs, not {}", outputs.size(), eager.size());
  std::optional<Trial> truth;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto strides = outputs[i].strides().vec();
    if (passes({outputs[i], strides}, by_eager(eager[i]), side_.allowance(i))) continue;
    if (!truth) {
      auto expected = side_.trial_on(source_.leaves_of(batch, batch.calls[call.call]), batch.seed, call.weights);
      if (!expected.ok()) return expected.error().message;
      truth = *std::move(expected);
    }
    const auto comparison = side_.compare_closely({outputs[i], strides}, *truth, i, side_.allowance(i));
    if (comparison.outcome != Outcome::verified)
      return fmt::format("{} {}", which_output(i, outputs.size()), comparison.detail);
  }
  return "";
}

std::optional<Verdict> CallCheck::check_outputs(const CallToCheck& call, const Returned& returned) const {
  auto& body = returned.answer.body;
  auto match = match_structure(side_.reference().forward, body.at("structure"));
  if (!match.mismatch.empty())
    return rejection("inconsistent", "another call returned something else: " + match.mismatch);
  auto& eager = call.eager.outputs[call.call];
  std::optional<Trial> truth;
  for (size_t i = 0; i < match.tensors.size(); ++i) {
    const size_t place = match.tensors[i];
    if (place >= returned.tensors.size()) return failed(Outcome::worker_failed, "outputs did not arrive whole");
    const CandidateOutput actual{returned.tensors[place], returned.strides[place]};
    const auto alias = body.at("aliases").at(place).get<std::string>();
    if (!alias.empty() && !side_.output_may_alias(i))
      return rejection("aliasing", fmt::format("output {} shares its memory with {}", i, alias));
    if (!call.against_truth && passes(actual, by_eager(eager[i]), side_.allowance(i))) continue;
    if (!truth) {
      auto& batch = call.planned.batch;
      auto expected = side_.trial_on(source_.leaves_of(batch, batch.calls[call.call]), batch.seed, call.weights);
      if (!expected.ok()) return failed(Outcome::worker_failed, expected.error().message);
      truth = *std::move(expected);
    }
    auto comparison = side_.compare_closely(actual, *truth, i, side_.allowance(i));
    if (comparison.outcome == Outcome::verified) continue;
    const std::string which = which_output(i, match.tensors.size());
    if (const int64_t unwritten = unwritten_elements(actual.tensor, call.planned.batch.memory); unwritten > 0)
      return rejection("unwritten", fmt::format("another call did not write {} elements of {}", unwritten, which));
    if (call.planned.traps[call.call] && is_old_answer(call, i, actual, truth->outputs[i]))
      return rejection("remembers",
                       fmt::format("the program remembers answers: for inputs that agree with earlier ones "
                                   "in part, {} {}",
                                   which, comparison.detail));
    return rejection("inconsistent", fmt::format("another call gave a wrong answer: {} {}", which, comparison.detail));
  }
  return std::nullopt;
}

// Whether each element is right either for the trap or for the call that it is like.
bool CallCheck::is_old_answer(const CallToCheck& call, size_t output, const CandidateOutput& actual,
                              const Expected& expected) const {
  auto& batch = call.planned.batch;
  Call old = batch.calls[call.call];
  old.last = {};
  auto before = side_.trial_on(source_.leaves_of(batch, old), batch.seed, call.weights);
  const at::Tensor value = actual.tensor.to(expected.truth.device());
  if (!before.ok() || !value.is_floating_point() || value.sizes() != expected.truth.sizes()) return false;
  const Expected& earlier = before->outputs[output];
  const at::Tensor nearer = (value - earlier.truth).abs().lt((value - expected.truth).abs());
  const Expected either{expected.eager.where(nearer.logical_not(), earlier.eager),
                        expected.truth.where(nearer.logical_not(), earlier.truth), actual.strides};
  return passes(actual, either, side_.allowance(output));
}

std::optional<Verdict> CallCheck::check_inputs(const CallToCheck& call, const Returned& returned) const {
  auto& body = returned.answer.body;
  auto& batch = call.planned.batch;
  auto before = tensors_of(source_.leaves_of(batch, batch.calls[call.call]));
  auto& after = call.eager.inputs[call.call];
  auto& digests = body.at("input_digests");
  for (size_t i = 0; i < before.size(); ++i) {
    if (digests.at(i) == digest_of(after[i])) continue;
    if (digests.at(i) == digest_of(before[i])) return failed(Outcome::mutated_input, fmt::format(kLeftAlone, i));
    auto& mutated = source_.mutated();
    auto found = std::find(mutated.begin(), mutated.end(), i);
    if (found == mutated.end())
      return failed(Outcome::mutated_input, fmt::format("input {} was changed by another call", i));
    const size_t place = body.at("outputs").get<size_t>() + static_cast<size_t>(found - mutated.begin());
    if (place >= returned.tensors.size()) return failed(Outcome::worker_failed, "inputs did not arrive whole");
    const Expected expected = by_eager(after[i]);
    const auto strides = after[i].strides().vec();
    if (!passes({returned.tensors[place], strides}, expected, side_.allowance_of_changed(expected)))
      return failed(Outcome::mutated_input, fmt::format("input {} was changed otherwise than the model does", i));
  }
  return std::nullopt;
}

}  // namespace tilepilot::eval
