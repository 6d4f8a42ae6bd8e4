#include "eval/worker/judge/decoy_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/worker/judge/call_check.h"

namespace tilepilot::eval {
namespace {

Verdict failed(std::string detail) {
  Verdict verdict;
  verdict.outcome = Outcome::worker_failed;
  verdict.detail = std::move(detail);
  return verdict;
}

bool is_one_of(StressKind kind, std::initializer_list<StressKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// What nobody wrote may be no number, and what a program makes of it then shows nothing: zero times it is none either.
// Where inputs are none, that is what kernels may be there to mend; and what was written are numbers.
bool has_numbers(Ghost ghost, const CandidateLink& link, const Message& answer, const Trial& trial) {
  if (ghost != Ghost::nothing) return true;
  const auto is_finite = [](const at::Tensor& t) { return !t.is_floating_point() || t.isfinite().all().item<bool>(); };
  if (!std::all_of(trial.inputs.begin(), trial.inputs.end(), is_finite)) return true;
  const auto tensors = link.tensors_of(answer);
  if (!tensors.ok()) return false;
  for (size_t i = 0; i < std::min(trial.outputs.size(), tensors->size()); ++i) {
    const at::Tensor &given = (*tensors)[i], &expected = trial.outputs[i].eager;
    if (!given.is_floating_point() || !given.sizes().equals(expected.sizes())) continue;
    const at::Tensor numbers = expected.isfinite().to(given.device());
    if (given.isfinite().logical_not_().logical_and_(numbers).any().item<bool>()) return false;
  }
  return true;
}

// Values for which kernels may be there though the given ones do not show it. A number in the place of a kernel's
// results may be right for all but extremes: zero in the place of the maximum that softmax subtracts.
bool may_show(Ghost ghost, StressKind kind) {
  return is_one_of(kind, {StressKind::special, StressKind::indices, StressKind::constants}) ||
         (ghost != Ghost::nothing && is_one_of(kind, {StressKind::large, StressKind::negative, StressKind::extreme}));
}

std::string in_words(Ghost ghost) {
  if (ghost == Ghost::nothing) return "without the generated kernels";
  return fmt::format("with {} in the place of what the generated kernels write",
                     ghost == Ghost::zeros ? "zeros" : "ones");
}

}  // namespace

// A program may raise where its kernels wrote nothing.
DecoyCheck::Failure DecoyCheck::unless_it_raised() const {
  if (sides_.link.failure().outcome == Outcome::runtime_error) return std::nullopt;
  return sides_.link.failure();
}

// Buffers that calls change are set back, too.
bool DecoyCheck::load(int set) {
  if (set == loaded_ && sides_.side.judged_state().empty()) return true;
  loaded_ = set;
  return load_weights_(set);
}

DecoyCheck::Failure DecoyCheck::restored(Failure failure) {
  if (failure || !sides_.link.is_open() || load(before_)) return failure;
  return sides_.link.failure();
}

std::optional<Verdict> DecoyCheck::without_kernels(Ghost ghost, CallSource& source, EagerCalls& eager,
                                                   const CandidateFacts& facts, std::vector<std::string>& notes) {
  auto planned = source.next(1, 0);
  if (!planned.ok()) return failed(planned.error().message);
  auto expected = eager.run(planned->batch, source);
  if (!expected.ok()) return failed(expected.error().message);
  Batch batch = planned->batch;
  batch.ghost = ghost;
  const std::vector<CallChannel::Base> bases = fresh_bases(*planned, source);
  const bool ran = sides_.channel.prepare(batch, bases) && sides_.channel.go();
  auto answer = ran ? sides_.channel.fetch(0) : std::nullopt;
  if (!answer) return unless_it_raised();
  const bool same =
      CallCheck(sides_.side, source).gives_the_same({*planned, *expected, 0, eager.weights()}, sides_.link, *answer);
  if (!sides_.channel.rest()) return sides_.link.failure();
  eager.drop(*std::move(expected));
  if (!same) return ghost == Ghost::nothing ? on_filled_memory(source, eager) : std::nullopt;
  std::string where;
  if (auto failure = restored(find_where_it_matters(ghost, facts, where))) return failure;
  if (where.empty())
    return rejection("decoy", fmt::format("the generated kernels do not matter: {} the outputs are the same",
                                          ghost == Ghost::nothing ? "without them" : in_words(ghost)));
  std::string note = fmt::format("{} the outputs are the same but with {}", in_words(ghost), where);
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
  return std::nullopt;
}

// On a GPU, a block that the call has freed may come back as a kernel's output, with what an operator of ATen wrote
// there: without the kernels the outputs differ only because that block was filled. Inputs are others, as in any call.
DecoyCheck::Failure DecoyCheck::on_filled_memory(CallSource& source, EagerCalls& eager) {
  if (sides_.side.device().is_cpu()) return std::nullopt;
  auto planned = source.next(1, 0);
  if (!planned.ok()) return failed(planned.error().message);
  planned->batch.fills = true;
  if (!sides_.side.judged_state().empty()) eager.use_weights(before_);
  if (!load(before_)) return sides_.link.failure();
  auto expected = eager.run(planned->batch, source);
  if (!expected.ok()) return failed(expected.error().message);
  const std::vector<CallChannel::Base> bases = fresh_bases(*planned, source);
  const bool ran = sides_.channel.prepare(planned->batch, bases) && sides_.channel.go();
  const auto answer = ran ? sides_.channel.fetch(0, source.mutated()) : std::nullopt;
  if (!answer) return sides_.link.failure();
  auto failure = CallCheck(sides_.side, source).check({*planned, *expected, 0, eager.weights()}, sides_.link, *answer);
  if (!failure && !sides_.channel.rest()) failure = sides_.link.failure();
  eager.drop(*std::move(expected));
  return failure;
}

DecoyCheck::Failure DecoyCheck::find_where_it_matters(Ghost ghost, const CandidateFacts& facts, std::string& where) {
  const ReferenceSide& side = sides_.side;
  Verdict scratch;
  if (side.trial_count() > 1) {
    const auto trial = side.trial(1);
    if (!trial.ok()) return failed(trial.error().message);
    if (!load((*trial)->weights)) return sides_.link.failure();
    const auto answer = make_call_(**trial, {.ghost = ghost});
    if (!answer) {
      where = "other weights";
      return unless_it_raised();
    }
    if (has_numbers(ghost, sides_.link, *answer, **trial) &&
        TrialCheck(side, sides_.link, facts, scratch).check(1, **trial, *answer)) {
      where = "other weights";
      return std::nullopt;
    }
  }
  for (size_t i = 0; i < side.stress_count(); ++i) {
    const StressKind kind = side.stress_kind(i);
    if (!may_show(ghost, kind)) continue;
    const auto stress = side.stress(i);
    if (!stress.ok()) continue;
    if (!load(stress->trial->weights)) return sides_.link.failure();
    const auto answer = make_call_(*stress->trial, {.ghost = ghost});
    if (answer && (!has_numbers(ghost, sides_.link, *answer, *stress->trial) ||
                   TrialCheck(side, sides_.link, facts, scratch).wrong_under(*stress, *answer).empty()))
      continue;
    where = to_string(kind);
    return answer ? std::nullopt : unless_it_raised();
  }
  return std::nullopt;
}

std::optional<DecoyCheck::Failure> DecoyCheck::look(const Trial& trial) {
  if (!load(trial.weights)) return sides_.link.failure();
  auto answer = make_call_(trial, {.looks = true});
  if (!answer) return unless_it_raised();
  if (answer->body.at("worked")) return Failure();
  return std::nullopt;
}

std::optional<DecoyCheck::Failure> DecoyCheck::look_under(std::initializer_list<StressKind> kinds) {
  const ReferenceSide& side = sides_.side;
  for (size_t i = 0; i < side.stress_count(); ++i) {
    if (!is_one_of(side.stress_kind(i), kinds)) continue;
    const auto stress = side.stress(i);
    if (!stress.ok()) continue;
    if (auto end = look(*stress->trial)) return end;
  }
  return std::nullopt;
}

// Where numbers of both signs do not suit the model, a kernel that does its part well may copy too (`relu`): then two
// trials must agree, one of which has other weights. Where the outputs are one number everywhere, right kernels write
// one too.
std::optional<Verdict> DecoyCheck::of_work() {
  auto end = look_under({StressKind::signs});
  for (size_t i = 0; !end && i < std::min<size_t>(2, sides_.side.trial_count()); ++i)
    if (auto trial = sides_.side.trial(i); trial.ok()) end = look(**trial);
  // A bound that the given inputs never reach (`clamp`, `nan_to_num`), or a mask that is seldom empty.
  if (!end)
    end = look_under({StressKind::large, StressKind::negative, StressKind::special, StressKind::extreme,
                      StressKind::indices, StressKind::constants});
  if (!end) return rejection("decoy", "the generated kernels do not matter: they copy, or write what changes nothing");
  return restored(std::move(*end));
}

}  // namespace tilepilot::eval
