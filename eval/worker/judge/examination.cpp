#include "eval/worker/judge/examination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "eval/graph/argument_json.h"
#include "eval/graph/graph_uses.h"
#include "eval/process/candidate_answer.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/call_check.h"
#include "eval/worker/judge/candidate_link.h"
#include "eval/worker/judge/decoy_check.h"
#include "eval/worker/judge/kernelbench_rule.h"
#include "eval/worker/judge/returned_form.h"
#include "eval/worker/judge/stage_check.h"
#include "eval/worker/judge/timing/profiling.h"
#include "eval/worker/judge/timing/roofline_guard.h"
#include "eval/worker/judge/timing/side_by_side.h"
#include "eval/worker/judge/trial_check.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/compare/output_structure.h"
#include "eval/worker/truth/degeneracy.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

class Examination {
 public:
  Examination(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options)
      : side_(side), request_(request), options_(options) {}

  // The first trials come first: most wrong programs fail there. What follows is shuffled.
  Verdict run() {
    verdict_.notes = side_.notes();
    verdict_.degenerate = side_.degenerate();
    const bool passed = in_phase("loading", [&] { return start() && load(); }) &&
                        in_phase("trials",
                                 [&] {
                                   return run_trial(0) && uses_kernels() && draws_again() &&
                                          (side_.trial_count() < 2 || run_trial(1)) && run_chain();
                                 }) &&
                        in_phase("stress", [&] { return run_stress_trials(); }) &&
                        in_phase("rounds", [&] { return run_rest(); });
    if (passed || is_wrong(verdict_.outcome)) in_phase("kernelbench", [&] { return try_rule_of_kernelbench(); });
    if (wrong_.trial) in_phase("stages", [&] { return look_at_stages(); });
    if (passed && request_.profile != Profiling::none && verdict_.candidate)
      in_phase("profile", [&] {
        profile_verified({side_, *channel_, *source_, options_, request_.profile, [this] { return send_weights(0); }},
                         verdict_);
        return true;
      });
    note_candidate();
    return std::move(verdict_);
  }

  // Gets ready to be timed: nullptr, or the verdict if it failed.
  const Verdict* get_ready(const Verdict& verified) {
    verdict_.degenerate = side_.degenerate();
    if (!start() || !load() || !run_trials(std::min<size_t>(2, side_.trial_count()))) return &verdict_;
    verdict_ = verified;
    return send_weights(0) ? nullptr : &verdict_;
  }
  Contestant contestant() {
    return {*channel_, [this](int set) { return send_weights(set); }, verdict_};
  }
  Verdict finish(const Contestant& contestant) {
    if (contestant.failure) {
      fail(*contestant.failure);
    } else if (request_.time) {
      hold_against_roofline(side_.reference(), options_.judge, verdict_);
    }
    return std::move(verdict_);
  }

 private:
  template <class Step>
  bool in_phase(const char* phase, const Step& step) {
    const double begin = monotonic_seconds(), waited = verdict_.seconds["waiting"];
    begin_step();
    const bool passed = step();
    verdict_.seconds[phase] += monotonic_seconds() - begin - (verdict_.seconds["waiting"] - waited);
    return passed;
  }
  // On a GPU, others that wait to be timed go first.
  void begin_step() {
    if (options_.share) verdict_.seconds["waiting"] += options_.share->renew();
  }
  void note_candidate() {
    if (!link_) return;
    verdict_.seconds["candidate"] += link_->seconds();
    verdict_.seconds["compiling"] += link_->compiling_seconds();
  }

  // Both return false, so that a step can end with them.
  bool fail(Outcome outcome, std::string detail) {
    verdict_.outcome = outcome;
    verdict_.detail = std::move(detail);
    return false;
  }
  void looked(const char* guard) { ++verdict_.guards_run[guard]; }
  bool reject(std::string guard, std::string detail) {
    verdict_.guard = std::move(guard);
    return fail(Outcome::rejected, std::move(detail));
  }
  bool fail(const Verdict& failure) {
    auto errors = std::move(verdict_.errors);
    auto notes = std::move(verdict_.notes);
    auto kernels = std::move(verdict_.kernels);
    auto guards = std::move(verdict_.guards_run);
    auto seconds = std::move(verdict_.seconds);
    bool degenerate = verdict_.degenerate;
    verdict_ = failure;
    verdict_.errors = std::move(errors);
    verdict_.notes = std::move(notes);
    verdict_.kernels = std::move(kernels);
    verdict_.guards_run = std::move(guards);
    verdict_.seconds = std::move(seconds);
    verdict_.degenerate = degenerate;
    if (verdict_.outcome == Outcome::rejected && verdict_.guard.empty()) verdict_.guard = "forbidden";
    return false;
  }

  bool start() {
    auto link = CandidateLink::start({.executable = options_.executable,
                                      .threads = options_.judge.threads,
                                      .source = request_.source,
                                      .name = request_.name,
                                      .gpu = side_.gpu(),
                                      .device = side_.device(),
                                      .broker = options_.broker,
                                      .fork_server = options_.fork_server,
                                      .most_bytes = most_returned_bytes(side_.reference().forward),
                                      .cache = options_.judge.cache,
                                      .cuda_folders = cuda_folders_beside_libtorch()});
    if (!link.ok()) return fail(Outcome::worker_failed, link.error().message);
    note_candidate();  // that was before it
    link_ = *std::move(link);
    link_->set_limit(options_.judge.time_limit_s);
    channel_.emplace(*link_, side_);
    return true;
  }

  // The weights' names and values, in state_dict order.
  json weight_names() const {
    json names = json::array();
    const GraphUses uses(side_.reference().forward);
    for (auto& parameter : side_.reference().parameters) {
      if (parameter.value < 0) continue;
      names.push_back({{"name", parameter.name},
                       {"buffer", parameter.is_buffer},
                       {"attribute", parameter.is_attribute},
                       {"storage", parameter.tensor},
                       {"used", !uses.users(parameter.value).empty() || uses.is_output(parameter.value)}});
    }
    return names;
  }
  std::vector<at::Tensor> weight_values(const State& weights) const {
    std::vector<at::Tensor> values;
    for (auto& parameter : side_.reference().parameters) {
      if (parameter.value < 0) continue;
      values.push_back(weights[static_cast<size_t>(parameter.value)]);
    }
    return values;
  }

  bool load() {
    auto& reference = side_.reference();
    json request = {{"op", "load"},
                    {"source", request_.source},
                    {"name", request_.name},
                    {"seed", reference.seed},
                    {"training", reference.training},
                    {"dtype", reference.dtype},
                    {"threads", options_.judge.threads},
                    {"memory_limit_bytes", options_.judge.memory_limit_bytes},
                    {"gpu_limit_bytes", options_.gpu_limit_bytes},
                    {"most_bytes", most_returned_bytes(reference.forward)},
                    {"cache", options_.judge.cache.string()},
                    {"target", options_.judge.target},
                    {"allow_foreign", options_.judge.allow_foreign},
                    {"aten", options_.judge.aten},
                    {"init_inputs", to_json(reference.init_inputs)},
                    {"weights", weight_names()}};
    auto answer = link_->ask(request, weight_values(side_.exported_weights()));
    if (!answer) return fail(link_->failure());
    for (auto& note : answer->body.at("notes")) verdict_.notes.push_back(note);
    lacking_ = answer->body.at("lacking");
    if (!lacking_.empty()) verdict_.notes.push_back("the candidate has no weights for the model's " + lacking_);
    return true;
  }

  // A model's state is what it was at the start of each trial: buffers that forward changes are set back.
  bool send_weights(int set) {
    if (side_.reference().parameters.empty()) return true;
    auto answer = link_->ask({{"op", "weights"}, {"set", set}}, weight_values(side_.weights(set)));
    if (!answer) return fail(link_->failure());
    sent_weights_ = set;
    auto dropped = answer->body.at("dropped").get<std::vector<std::string>>();
    if (!dropped.empty() && !std::exchange(told_dropped_, true)) {
      verdict_.notes.push_back(fmt::format(
          "tensors that `forward` keeps, dropped by the judge when it changes the weights, as `load_state_dict` "
          "would not: `{}`",
          fmt::join(dropped, "`, `")));
    }
    return true;
  }

  static bool is_wrong(Outcome outcome) { return outcome == Outcome::wrong_values || outcome == Outcome::not_finite; }

  static constexpr int64_t kBaseOfTrials = -1;

  Batch batch_of(const Trial& trial, Manner manner) {
    Batch batch;
    batch.calls = {{kBaseOfTrials, {}, {}}};
    batch.seed = trial.forward_seed;
    batch.ghost = manner.ghost;
    batch.looks = manner.looks;
    batch.backwards = manner.backwards;
    batch.memory = memory_ = secret_();
    return batch;
  }

  // The same steps as for any other call.
  std::optional<Message> call(const Trial& trial, Manner manner = {}) {
    std::vector<std::string> state;
    for (auto& changed : trial.state) state.push_back(changed.name);
    const Batch batch = batch_of(trial, manner);
    if (options_.judge.aten == "none" || options_.judge.aten == "data") looked("aten_policy");
    if (!channel_->prepare(batch, {{kBaseOfTrials, trial.inputs}}, trial.numbers) || !channel_->go())
      return std::nullopt;
    auto answer = channel_->fetch(0, trial.mutated, &state);
    return answer && channel_->rest() ? std::move(answer) : std::nullopt;
  }

  bool run_trials(size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (!run_trial(i)) return false;
    return true;
  }

  // The second one's blocks run in the opposite order.
  bool run_trial(size_t number) {
    begin_step();
    auto trial = side_.trial(number);
    if (!trial.ok()) return fail(Outcome::worker_failed, trial.error().message);
    link_->set_limit(trials_left_);
    if (number > 0 && !send_weights((*trial)->weights)) return false;
    const bool backwards = number == 1;
    auto answer = call(**trial, {.backwards = backwards});
    if (!answer) return fail(link_->failure());
    trials_left_ = link_->left();
    if (check_trial(static_cast<int>(number), **trial, *answer)) return true;
    if (is_wrong(verdict_.outcome)) wrong_ = {*trial, {.backwards = backwards}};
    if (backwards && is_wrong(verdict_.outcome)) look_at_order(**trial);
    return false;
  }

  // With other weights a program loses what it keeps: random numbers that it drew once show before.
  bool draws_again() {
    constexpr size_t kSameWeights = 2;
    if (!side_.is_random() || side_.trial_count() <= kSameWeights) return true;
    return side_.weights_of_trial(kSameWeights) != side_.weights_of_trial(0) || run_trial(kSameWeights);
  }

  // Which kernel goes wrong first. Whatever happens here, the verdict stays.
  bool look_at_stages() {
    Verdict kept = verdict_;
    const int weights = wrong_.trial->weights;
    const Batch batch = batch_of(*wrong_.trial, wrong_.manner);
    add_stages({side_, *channel_, *wrong_.trial, batch, [&] { return send_weights(weights); }}, kept);
    verdict_ = std::move(kept);
    return true;
  }

  // Calls that go on from what the one before has left in the model's buffers.
  bool run_chain() {
    if (!side_.reads_state()) return true;
    const auto chain = side_.chain();
    if (!chain.ok()) return fail(Outcome::worker_failed, chain.error().message);
    if (!send_weights(side_.weights_of_trial(0))) return false;
    link_->set_limit(options_.judge.time_limit_s);
    for (size_t i = 0; i < chain->size(); ++i) {
      auto answer = call(*(*chain)[i]);
      if (!answer) return fail(link_->failure());
      if (check_trial(static_cast<int>(side_.trial_count() + i), *(*chain)[i], *answer)) continue;
      if (is_wrong(verdict_.outcome) && i > 0)
        verdict_.detail = fmt::format(
            "right at the first call, but call {} in a row goes on from what the {} left in "
            "the model's buffers: {}",
            i + 1, i == 1 ? "first" : "earlier ones", verdict_.detail);
      return false;
    }
    return true;
  }

  // Of a trial that failed with its blocks in the opposite order.
  void look_at_order(const Trial& trial) {
    if (!send_weights(trial.weights)) return;
    const auto answer = call(trial);
    Verdict forwards;
    if (!answer || TrialCheck(side_, *link_, {lacking_, memory_}, forwards).check(1, trial, *answer)) return;
    verdict_.detail =
        "a block uses what another block writes, and nothing says which comes first: right only while blocks run one "
        "after another, from the first to the last; " +
        verdict_.detail;
  }

  // The trials that are left, runs without kernels and, if asked, timed rounds, in an order that is drawn.
  bool run_rest() {
    auto given = side_.trial(0);
    if (!given.ok()) return fail(Outcome::worker_failed, given.error().message);
    CallSource& source = source_.emplace(side_, **given);
    given->reset();
    EagerCalls eager(side_);
    const int weights = side_.weights_of_trial(0);
    if (!send_weights(weights)) return false;
    eager.use_weights(weights);
    std::vector<Interlude> interludes;
    for (size_t i = 2; i < side_.trial_count(); ++i)
      interludes.push_back({[this, i] { return run_trial(i); }, side_.weights_of_trial(i)});
    std::vector<Ghost> ghosts;
    if (options_.judge.aten != "any") ghosts = {Ghost::nothing, Ghost::nothing};
    if (options_.judge.aten == "hybrid" && computes(side_.reference().forward) && !side_.degenerate()) {
      ghosts.insert(ghosts.end(), {Ghost::zeros, Ghost::ones});
      interludes.push_back({[&] { return kernels_do_work(eager); }});
    }
    if (request_.time) add_stress(interludes);
    for (const Ghost ghost : ghosts)
      interludes.push_back({[&, ghost] { return differs_without_kernels(ghost, source, eager); }});
    std::vector<Contestant> contestants = {contestant()};
    const bool passed =
        run_side_by_side(side_, source, eager, contestants, std::move(interludes), {options_, request_.time});
    source.forget_draws();
    if (contestants[0].failure) return fail(*contestants[0].failure);
    if (!passed) return false;  // an interlude has said why
    if (request_.time &&
        !std::all_of(passed_stress_.begin(), passed_stress_.end(), [&](size_t index) { return is_still_right(index); }))
      return false;
    verdict_.outcome = Outcome::verified;
    if (request_.time) hold_against_roofline(side_.reference(), options_.judge, verdict_);
    return true;
  }

  bool check_trial(int number, const Trial& trial, const Message& answer) {
    verdict_.kernels = answer.body.at("kernels").get<std::vector<std::string>>();
    auto failure = TrialCheck(side_, *link_, {lacking_, memory_}, verdict_).check(number, trial, answer);
    const json warnings = answer.body.value("warnings", json::array());
    const bool races = std::any_of(warnings.begin(), warnings.end(), [](const json& warning) {
      return warning.value("kind", "") == info(DiagnosticKind::block_race).name;
    });
    if (!failure && races)
      failure = TrialFailure{Outcome::rejected, "blocks of a kernel change the same elements: see the warning", "race"};
    if (!failure) return true;
    if (is_wrong(failure->outcome) || races) link_->add_warnings(warnings, verdict_);
    verdict_.guard = std::move(failure->guard);
    return fail(failure->outcome, std::move(failure->detail));
  }

  // Inputs that `get_inputs` does not draw, in an order that the program cannot foresee. What is wrong there is right
  // for the given inputs only.
  bool run_stress_trials() {
    const size_t count = side_.stress_count();
    const auto& told = side_.stress_notes();
    verdict_.notes.insert(verdict_.notes.end(), told.begin(), told.end());
    if (count == 0) return true;
    const int usual = side_.weights_of_trial(0);
    int sent = -1;
    link_->set_limit(options_.judge.time_limit_s);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(std::random_device{}()));
    constexpr int kMostAsked = 4;
    int asked_again = 0;
    std::set<std::string> broken;
    std::string first;
    const double begin = monotonic_seconds();
    for (size_t index : order) {
      begin_step();
      auto stress = side_.stress(index);
      if (!stress.ok()) return fail(Outcome::worker_failed, stress.error().message);
      // Buffers that calls change are set back, too.
      const int weights = stress->trial->weights;
      if ((weights != sent || !side_.judged_state().empty()) && !send_weights(weights)) return false;
      sent = weights;
      bool gross = false;
      const std::string wrong = wrong_under(*stress, &gross);
      if (wrong.empty()) passed_stress_.push_back(index);
      if (wrong.empty()) continue;
      if (gross && asked_again++ < kMostAsked && is_right_again(*stress))
        return reject("inconsistent", "right in one call, and wrong in the call before, on the same inputs: " + wrong);
      broken.emplace(to_string(stress->kind));
      if (first.empty()) first = wrong;
      if (link_->is_open()) continue;
      // The program died of these inputs; it goes on as one that has been seen before.
      if (!begin_again()) return false;
      sent = usual;
      link_->set_limit(options_.judge.time_limit_s);
    }
    stress_seconds_ = (monotonic_seconds() - begin) / static_cast<double>(count);
    if (!broken.empty()) note_given_inputs_only(fmt::format("{}", fmt::join(broken, ", ")), first);
    return true;
  }

  void note_given_inputs_only(const std::string& kinds, const std::string& first) {
    verdict_.given_inputs_only = true;
    verdict_.notes.push_back(fmt::format("verified for these inputs only: it fails with {}; first, {}", kinds, first));
  }

  // Such inputs again among the timed calls, and after them: a program that counts its calls would be right before
  // these alone.
  void add_stress(std::vector<Interlude>& interludes) {
    constexpr double kSeconds = 1;
    constexpr size_t kFewest = 2;
    const size_t most = std::max(kFewest, static_cast<size_t>(kSeconds / std::max(stress_seconds_, 1e-3)));
    if (passed_stress_.size() > most) passed_stress_.resize(most);
    for (const size_t index : passed_stress_) interludes.push_back({[this, index] { return is_still_right(index); }});
  }

  bool is_still_right(size_t index) {
    auto stress = side_.stress(index);
    if (!stress.ok()) return fail(Outcome::worker_failed, stress.error().message);
    const int before = sent_weights_, weights = stress->trial->weights;
    const bool sends = weights != before || !side_.judged_state().empty();
    link_->set_limit(options_.judge.time_limit_s);
    if (sends && !send_weights(weights)) return false;
    bool gross = false;
    const std::string wrong = wrong_under(*stress, &gross);
    if (!link_->is_open()) return fail(link_->failure());
    if (gross) return reject("inconsistent", "right before it was timed, and wrong later on the same inputs: " + wrong);
    if (!wrong.empty() && !verdict_.given_inputs_only)
      note_given_inputs_only(std::string(to_string(stress->kind)), wrong);
    return !sends || send_weights(before);
  }

  bool begin_again() {
    auto notes = verdict_.notes;
    const bool begun = start() && load() && run_trials(std::min<size_t>(2, side_.trial_count())) &&
                       send_weights(side_.weights_of_trial(0));
    if (begun) verdict_.notes = std::move(notes);
    return begun;
  }

  // Empty: nothing. `gross`: floating outputs are wrong by far, so that no rounding decides.
  std::string wrong_under(const StressTrial& stress, bool* gross = nullptr) {
    constexpr double kGross = 64;
    auto answer = call(*stress.trial);
    if (!answer) return link_->failure().detail;
    TrialCheck check(side_, *link_, {lacking_, memory_}, verdict_);
    std::string wrong = check.wrong_under(stress, *answer);
    const auto is_floating = [](const Expected& output) { return output.eager.is_floating_point(); };
    const auto& outputs = stress.trial->outputs;
    if (wrong.empty() || !gross || !std::all_of(outputs.begin(), outputs.end(), is_floating)) return wrong;
    StressTrial wide = stress;
    for (Allowance& allowance : wide.allowances) allowance = allowance.times(kGross);
    *gross = !check.wrong_under(wide, *answer).empty();
    return wrong;
  }

  // A program that goes by the number of its calls is wrong in few of them, whatever the inputs.
  bool is_right_again(const StressTrial& stress) {
    if (!link_->is_open()) return false;
    if (!side_.judged_state().empty() && !send_weights(stress.trial->weights)) return false;
    return wrong_under(stress).empty() && link_->is_open();
  }

  // What KernelBench's script would say of the values: five draws of inputs from its seed, and `allclose`.
  bool try_rule_of_kernelbench() {
    constexpr int kCalls = 5;
    constexpr double kPatienceSeconds = 2, kEnoughSeconds = 1;
    if (!link_ || !link_->is_open() || !send_weights(0)) return false;
    link_->set_limit(options_.judge.time_limit_s);
    const double begin = monotonic_seconds(), one_draw = seconds_to_draw(numbers_of_inputs(side_.reference().forward));
    if (one_draw > kPatienceSeconds) {
      verdict_.notes.push_back(fmt::format(
          "KernelBench's own rule was not tried: a processor draws its inputs, one number after another, which here "
          "takes about {:.0f} s a call",
          one_draw));
      return true;
    }
    KernelBenchRule rule;
    for (uint64_t seed : kernelbench_seeds(kCalls)) {
      if (rule.trials > 0 && monotonic_seconds() - begin > kEnoughSeconds) break;
      begin_step();
      auto trial = side_.trial_by_seed(seed);
      if (!trial.ok()) return false;
      if (rule.trials > 0 && !side_.judged_state().empty() && !send_weights(0)) return false;
      auto answer = call(*trial);
      if (!answer) return false;
      rule.tolerance = 0;
      ++rule.trials;
      auto match = match_structure(side_.reference().forward, answer->body.at("structure"));
      auto tensors = link_->tensors_of(*answer);
      const bool fits = tensors.ok() && match.mismatch.empty();
      rule.passed += are_close(*trial, fits ? &*tensors : nullptr, match.tensors, rule.tolerance) ? 1 : 0;
    }
    verdict_.kernelbench = rule;
    return true;
  }

  bool uses_kernels() {
    if (options_.judge.aten == "any") return true;
    looked("no_kernel");
    if (!verdict_.kernels.empty()) return true;
    return reject("no_kernel", "no generated kernel ran: the program hands the whole job back to PyTorch's operators");
  }

  // Kernels that do not matter beside operators that do the whole job.
  DecoyCheck decoy_check(EagerCalls& eager) {
    looked("decoy");
    link_->set_limit(options_.judge.time_limit_s);
    return {{side_, *link_, *channel_},
            [this](const Trial& trial, Manner manner) { return call(trial, manner); },
            [this](int set) { return send_weights(set); },
            eager.weights()};
  }
  bool differs_without_kernels(Ghost ghost, CallSource& source, EagerCalls& eager) {
    auto failure = decoy_check(eager).without_kernels(ghost, source, eager, {lacking_, memory_}, verdict_.notes);
    return !failure || fail(*failure);
  }
  bool kernels_do_work(EagerCalls& eager) {
    auto failure = decoy_check(eager).of_work();
    return !failure || fail(*failure);
  }

  const ReferenceSide& side_;
  const CheckRequest& request_;
  const ExaminationOptions& options_;
  std::unique_ptr<CandidateLink> link_;
  std::optional<CallChannel> channel_;
  std::optional<CallSource> source_;  // once rounds have run
  std::mt19937_64 secret_{std::random_device{}()};
  uint64_t memory_ = 0;                               // of the last trial
  double trials_left_ = options_.judge.time_limit_s;  // of what all trials share
  struct {
    std::shared_ptr<const Trial> trial;
    Manner manner;
  } wrong_;  // the trial that found wrong values; null: none did
  bool told_dropped_ = false;
  int sent_weights_ = 0;
  std::vector<size_t> passed_stress_;  // in the order in which they were tried
  double stress_seconds_ = 0;          // of one of them
  std::string lacking_;                // parameters of the model's that the candidate has none for
  Verdict verdict_;
};

}  // namespace

Verdict examine(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options,
                const Verdict* verified) {
  try {
    Verdict verdict = verified ? compare_verified(side, {request}, options, {*verified})[0]
                               : Examination(side, request, options).run();
    // The process that compiled knows; the candidate's could say anything once such source runs there.
    if (options.judge.allow_foreign && options.broker) verdict.foreign_source = options.broker->saw_foreign_source();
    return verdict;
  } catch (const json::exception& error) { return protocol_failure(error.what()); }  // a part of an answer is missing
}

std::vector<Verdict> compare_verified(const ReferenceSide& side, const std::vector<CheckRequest>& requests,
                                      const ExaminationOptions& options, const std::vector<Verdict>& verified) {
  std::vector<std::unique_ptr<Examination>> examinations;
  std::vector<Verdict> verdicts(requests.size());
  std::vector<Contestant> contestants;
  for (size_t i = 0; i < requests.size(); ++i) {
    examinations.push_back(std::make_unique<Examination>(side, requests[i], options));
    if (auto* failure = examinations[i]->get_ready(verified[i])) {
      verdicts[i] = *failure;
      continue;
    }
    contestants.push_back(examinations[i]->contestant());
    contestants.back().place = i;
  }
  auto given = side.trial(0);
  if (!given.ok()) {
    for (Verdict& verdict : verdicts) verdict.detail = given.error().message;
    return verdicts;
  }
  CallSource source(side, **given);
  given->reset();
  EagerCalls eager(side);
  if (!contestants.empty()) run_side_by_side(side, source, eager, contestants, {}, {options, requests[0].time});
  for (Contestant& each : contestants) verdicts[each.place] = examinations[each.place]->finish(each);
  return verdicts;
}

}  // namespace tilepilot::eval
