#include "eval/worker/judge/examination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "compiler/runtime/cuda/nvrtc.h"
#include "eval/argument_json.h"
#include "eval/candidate_answer.h"
#include "eval/graph_uses.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/call_check.h"
#include "eval/worker/judge/candidate_link.h"
#include "eval/worker/judge/kernelbench_rule.h"
#include "eval/worker/judge/roofline_guard.h"
#include "eval/worker/judge/side_by_side.h"
#include "eval/worker/truth/degeneracy.h"
#include "eval/worker/truth/digest.h"
#include "eval/worker/truth/output_structure.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

// Where NVRTC may be, besides the packages of LibTorch.
std::vector<std::filesystem::path> cuda_folders() {
  auto folders = runtime::cuda::default_cuda_folders();
  if (const auto packages = libtorch_packages(); !packages.empty()) folders.insert(folders.begin(), packages);
  return folders;
}

class Examination {
 public:
  Examination(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options)
      : side_(side), request_(request), options_(options) {}

  // The first trials come first: most wrong programs fail there. What follows is shuffled.
  Verdict run() {
    verdict_.notes = side_.notes();
    verdict_.degenerate = side_.degenerate();
    const bool passed = start() && load() && run_trial(0) && uses_kernels() &&
                        (side_.trial_count() < 2 || run_trial(1)) && run_stress_trials() && run_rest();
    if (passed || is_wrong(verdict_.outcome)) try_rule_of_kernelbench();
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
  // Both return false, so that a step can end with them.
  bool fail(Outcome outcome, std::string detail) {
    verdict_.outcome = outcome;
    verdict_.detail = std::move(detail);
    return false;
  }
  bool reject(std::string guard, std::string detail) {
    verdict_.guard = std::move(guard);
    return fail(Outcome::rejected, std::move(detail));
  }
  bool fail(const Verdict& failure) {
    auto errors = std::move(verdict_.errors);
    auto notes = std::move(verdict_.notes);
    auto kernels = std::move(verdict_.kernels);
    bool degenerate = verdict_.degenerate;
    verdict_ = failure;
    verdict_.errors = std::move(errors);
    verdict_.notes = std::move(notes);
    verdict_.kernels = std::move(kernels);
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
                                      .cache = options_.judge.cache,
                                      .cuda_folders = cuda_folders()});
    if (!link.ok()) return fail(Outcome::worker_failed, link.error().message);
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
                       {"storage", parameter.tensor},
                       {"used", !uses.users(parameter.value).empty() || uses.is_output(parameter.value)}});
    }
    return names;
  }
  std::vector<at::Tensor> weight_values(int set) const {
    std::vector<at::Tensor> values;
    const State weights = side_.weights(set);
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
                    {"cache", options_.judge.cache.string()},
                    {"target", options_.judge.target},
                    {"allow_foreign", options_.judge.allow_foreign},
                    {"aten", options_.judge.aten},
                    {"init_inputs", to_json(reference.init_inputs)},
                    {"weights", weight_names()}};
    auto answer = link_->ask(request, weight_values(0));
    if (!answer) return fail(link_->failure());
    for (auto& note : answer->body.at("notes")) verdict_.notes.push_back(note);
    lacking_ = answer->body.at("lacking");
    if (!lacking_.empty()) verdict_.notes.push_back("the candidate has no weights for the model's " + lacking_);
    return true;
  }

  // A model's state is what it was at the start of each trial: buffers that forward changes are set back.
  bool send_weights(int set) {
    if (side_.reference().parameters.empty()) return true;
    auto answer = link_->ask({{"op", "weights"}, {"set", set}}, weight_values(set));
    if (!answer) return fail(link_->failure());
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

  // The same steps as for any other call.
  std::optional<Message> call(const Trial& trial, bool looks = false) {
    constexpr int64_t kBaseOfTrials = -1;
    std::vector<std::string> state;
    for (auto& changed : trial.state) state.push_back(changed.name);
    Batch batch;
    batch.calls = {{kBaseOfTrials, {}, {}}};
    batch.seed = trial.forward_seed;
    batch.looks = looks;
    batch.memory = memory_ = secret_();
    if (!channel_->prepare(batch, {{kBaseOfTrials, trial.inputs}}) || !channel_->go()) return std::nullopt;
    auto answer = channel_->fetch(0, trial.mutated, &state);
    return answer && channel_->rest() ? std::move(answer) : std::nullopt;
  }

  bool run_trials(size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (!run_trial(i)) return false;
    return true;
  }

  bool run_trial(size_t number) {
    auto trial = side_.trial(number);
    if (!trial.ok()) return fail(Outcome::worker_failed, trial.error().message);
    link_->set_limit(trials_left_);
    if (number > 0 && !send_weights((*trial)->weights)) return false;
    auto answer = call(**trial);
    if (!answer) return fail(link_->failure());
    trials_left_ = link_->left();
    return check_trial(static_cast<int>(number), **trial, *answer);
  }

  // The trials that are left, runs without kernels and, if asked, timed rounds, in an order that is drawn.
  bool run_rest() {
    auto given = side_.trial(0);
    if (!given.ok()) return fail(Outcome::worker_failed, given.error().message);
    CallSource source(side_, **given);
    given->reset();
    EagerCalls eager(side_);
    const int weights = side_.weights_of_trial(0);
    if (!send_weights(weights)) return false;
    eager.use_weights(weights);
    std::vector<Interlude> interludes;
    for (size_t i = 2; i < side_.trial_count(); ++i)
      interludes.push_back({[this, i] { return run_trial(i); }, side_.weights_of_trial(i)});
    const int ghosts = options_.judge.aten == "any" ? 0 : 2;
    for (int i = 0; i < ghosts; ++i) interludes.push_back({[&] { return differs_without_kernels(source, eager); }});
    if (options_.judge.aten == "hybrid" && computes(side_.reference().forward))
      interludes.push_back({[this] { return kernels_do_work(); }});
    std::vector<Contestant> contestants = {contestant()};
    const bool passed =
        run_side_by_side(side_, source, eager, contestants, std::move(interludes), {options_.judge, request_.time});
    if (contestants[0].failure) return fail(*contestants[0].failure);
    if (!passed) return false;  // an interlude has said why
    verdict_.outcome = Outcome::verified;
    if (request_.time) hold_against_roofline(side_.reference(), options_.judge, verdict_);
    return true;
  }

  bool check_trial(int number, const Trial& trial, const Message& answer) {
    auto& body = answer.body;
    verdict_.kernels = body.at("kernels").get<std::vector<std::string>>();
    low_precision_ = body.at("low_precision").get<std::map<std::string, std::string>>();
    auto match = match_structure(side_.reference().forward, body.at("structure"));
    if (!match.mismatch.empty()) return fail(Outcome::wrong_shape, match.mismatch);
    auto tensors = link_->tensors_of(answer);
    size_t outputs = body.at("outputs");
    const auto state = body.at("state").get<std::vector<std::string>>();
    if (!tensors.ok() || tensors->size() != outputs + trial.mutated.size() + state.size()) {
      return fail(Outcome::worker_failed, "outputs did not arrive whole");
    }
    auto strides = output_strides(body.at("tensors"));
    for (size_t i = 0; i < match.tensors.size(); ++i) {
      if (!check_output(number, trial, {i, match.tensors[i]}, {*tensors, strides})) return false;
    }
    if (!check_inputs(trial, body, *tensors, outputs)) return false;
    const std::vector<at::Tensor> buffers(tensors->end() - static_cast<int64_t>(state.size()), tensors->end());
    if (!check_state(number, trial, state, buffers) || !check_weights(trial, body.at("changed_weights"))) return false;
    if (body.at("earlier_changed").get<bool>()) { return reject("reused_memory", kReusesMemory); }
    return check_aliases(body.at("aliases"), match.tensors);
  }

  struct Place {
    size_t expected, actual;  // which output of the model, which tensor of the candidate
  };
  struct Returned {
    const std::vector<at::Tensor>& tensors;
    const std::vector<std::vector<int64_t>>& strides;
  };

  static std::vector<std::vector<int64_t>> output_strides(const json& description) {
    std::vector<std::vector<int64_t>> strides;
    for (auto& node : description) strides.push_back(node.at("strides").get<std::vector<int64_t>>());
    return strides;
  }

  bool check_output(int number, const Trial& trial, const Place& place, const Returned& returned) {
    CandidateOutput actual{returned.tensors[place.actual], returned.strides[place.actual]};
    auto comparison = compare(actual, trial.outputs[place.expected], side_.allowance(place.expected));
    comparison.error.trial = number;
    comparison.error.output = static_cast<int>(place.expected);
    verdict_.errors.push_back(comparison.error);
    std::string which = trial.outputs.size() > 1 ? fmt::format("output {}", place.expected) : "the output";
    if (comparison.outcome == Outcome::verified) {
      if (!comparison.note.empty() && number == 0)
        verdict_.notes.push_back(fmt::format("{} {}", which, comparison.note));
      return true;
    }
    std::string when = trial.weights != 0 && number == 1 ? " (with other weights than at construction)" : "";
    bool form = comparison.outcome != Outcome::wrong_values && comparison.outcome != Outcome::not_finite;
    hint_at_precision(comparison, actual.tensor, trial.outputs[place.expected]);
    if (const int64_t unwritten = unwritten_elements(actual.tensor, memory_); unwritten > 0)
      verdict_.notes.push_back(
          fmt::format("{} elements of {} hold what memory held that nobody wrote", unwritten, which));
    std::string detail = fmt::format("{}{} {}{}", which, form ? "" : " is wrong:", comparison.detail, when);
    if (comparison.outcome != Outcome::wrong_values || lacking_.empty()) return fail(comparison.outcome, detail);
    return fail(Outcome::weights_mismatch,
                fmt::format("the candidate's weights are not the model's: it lacks {}; {}", lacking_, detail));
  }

  // Programs written for 16 bit are judged in the model's float32 unless the user says otherwise.
  void hint_at_precision(const Comparison& comparison, const at::Tensor& actual, const Expected& expected) {
    constexpr double kRoundings = 0.02;  // an error that roundings to float16 explain
    bool values = comparison.outcome == Outcome::wrong_values || comparison.outcome == Outcome::not_finite;
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
    verdict_.notes.push_back(fmt::format("{} and the model's is float32: if that is meant, judge with `--dtype {}`",
                                         why, type == at::kHalf ? "fp16" : "bf16"));
  }

  // Inputs stay as they were, or become what the model makes of them.
  bool check_inputs(const Trial& trial, const json& body, const std::vector<at::Tensor>& tensors, size_t outputs) {
    auto& digests = body.at("input_digests");
    for (size_t i = 0; i < trial.inputs.size(); ++i) {
      if (digests.at(i) == digest_of(trial.inputs[i])) continue;
      auto found = std::find(trial.mutated.begin(), trial.mutated.end(), i);
      if (found == trial.mutated.end()) return fail(Outcome::mutated_input, fmt::format("input {} was changed", i));
      auto which = static_cast<size_t>(found - trial.mutated.begin());
      auto& expected = trial.mutated_expected[which];
      const std::vector<int64_t> strides = expected.eager.strides().vec();
      auto comparison = compare({tensors[outputs + which], strides}, expected, side_.allowance_of_changed(expected));
      if (comparison.outcome != Outcome::verified) {
        return fail(Outcome::mutated_input,
                    fmt::format("input {} was changed otherwise than the model does: {}", i, comparison.detail));
      }
    }
    return true;
  }

  // What the model leaves as it is, a candidate must.
  bool check_weights(const Trial& trial, const std::vector<std::string>& changed) {
    for (auto& name : changed) {
      const bool model_too = std::any_of(trial.state.begin(), trial.state.end(),
                                         [&](const ChangedState& each) { return each.name == name; });
      if (!model_too)
        return fail(Outcome::wrong_values, fmt::format("the call changed `{}`, which the model leaves as it is", name));
    }
    return true;
  }

  // Buffers that the model changes, by name. A candidate may do without them.
  bool check_state(int number, const Trial& trial, const std::vector<std::string>& names,
                   const std::vector<at::Tensor>& tensors) {
    std::vector<std::string> missing;
    for (auto& changed : trial.state) {
      const auto found = std::find(names.begin(), names.end(), changed.name);
      if (found == names.end()) {
        missing.push_back(changed.name);
        continue;
      }
      const at::Tensor& tensor = tensors[static_cast<size_t>(found - names.begin())];
      const auto strides = changed.expected.eager.strides().vec();
      const auto comparison =
          compare({tensor, strides}, changed.expected, side_.allowance_of_changed(changed.expected));
      if (comparison.outcome == Outcome::verified) continue;
      const bool counts = !changed.expected.eager.is_floating_point();
      const std::string what =
          fmt::format("the buffer `{}`, which the model changes, is not what the model makes of it: {}", changed.name,
                      comparison.detail);
      if (!counts) return fail(Outcome::wrong_values, what);
      if (number == 0) verdict_.notes.push_back(what);  // a counter of calls, which `forward` reads in rare modes only
    }
    if (!missing.empty() && number == 0)
      verdict_.notes.push_back(
          fmt::format("the model changes `{}`, which the candidate does not have: what reads it "
                      "later (evaluation mode, `state_dict`) differs",
                      fmt::join(missing, "`, `")));
    return true;
  }

  // Inputs that `get_inputs` does not draw, in an order that the program cannot foresee. What is wrong there is right
  // for the given inputs only.
  bool run_stress_trials() {
    const size_t count = side_.stress_count();
    if (count == 0) return true;
    if (!send_weights(side_.weights_of_trial(0))) return false;
    link_->set_limit(options_.judge.time_limit_s);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(std::random_device{}()));
    std::vector<std::string> broken;
    std::string first;
    for (size_t index : order) {
      auto stress = side_.stress(index);
      if (!stress.ok()) return fail(Outcome::worker_failed, stress.error().message);
      const std::string wrong = wrong_under(*stress);
      if (wrong.empty()) continue;
      broken.emplace_back(to_string(stress->kind));
      if (first.empty()) first = wrong;
      if (link_->is_open()) continue;
      // The program died of these inputs; it goes on as one that has been seen before.
      if (!begin_again()) return false;
      link_->set_limit(options_.judge.time_limit_s);
    }
    if (broken.empty()) return true;
    verdict_.given_inputs_only = true;
    verdict_.notes.push_back(
        fmt::format("verified for these inputs only: it fails with {}; first, {}", fmt::join(broken, ", "), first));
    return true;
  }

  bool begin_again() {
    auto notes = verdict_.notes;
    const bool begun = start() && load() && run_trials(std::min<size_t>(2, side_.trial_count())) &&
                       send_weights(side_.weights_of_trial(0));
    if (begun) verdict_.notes = std::move(notes);
    return begun;
  }

  // Empty: nothing.
  std::string wrong_under(const StressTrial& stress) {
    const Trial& trial = *stress.trial;
    auto answer = call(trial);
    if (!answer) return link_->failure().detail;
    auto match = match_structure(side_.reference().forward, answer->body.at("structure"));
    if (!match.mismatch.empty()) return match.mismatch;
    auto tensors = link_->tensors_of(*answer);
    if (!tensors) return "outputs did not arrive whole";
    auto strides = output_strides(answer->body.at("tensors"));
    for (size_t i = 0; i < match.tensors.size(); ++i) {
      if (!trial.outputs[i].eager.is_floating_point() && !keeps_apart(stress.kind)) continue;
      CandidateOutput actual{(*tensors)[match.tensors[i]], strides[match.tensors[i]]};
      auto comparison = compare(actual, trial.outputs[i], stress.allowances[i]);
      if (comparison.outcome != Outcome::verified) return fmt::format("output {}: {}", i, comparison.detail);
    }
    return "";
  }

  // What KernelBench's script would say of the values: five draws of inputs from its seed, and `allclose`.
  void try_rule_of_kernelbench() {
    constexpr int kCalls = 5;
    constexpr double kPatienceSeconds = 2;
    if (!link_ || !link_->is_open() || !send_weights(0)) return;
    link_->set_limit(options_.judge.time_limit_s);
    const double begin = monotonic_seconds();
    KernelBenchRule rule;
    for (uint64_t seed : kernelbench_seeds(kCalls)) {
      if (rule.trials > 0 && monotonic_seconds() - begin > kPatienceSeconds) break;
      auto trial = side_.trial_by_seed(seed);
      if (!trial.ok()) return;
      auto answer = call(*trial);
      if (!answer) return;
      rule.tolerance = 0;
      ++rule.trials;
      rule.passed += is_close(*trial, *answer, rule.tolerance) ? 1 : 0;
    }
    verdict_.kernelbench = rule;
  }

  bool is_close(const Trial& trial, const Message& answer, double& tolerance) {
    auto match = match_structure(side_.reference().forward, answer.body.at("structure"));
    auto tensors = link_->tensors_of(answer);
    bool close = tensors.ok() && match.mismatch.empty();
    for (size_t i = 0; i < trial.outputs.size(); ++i) {
      const at::Tensor& eager = trial.outputs[i].eager;
      const double allowed = tolerance_of_kernelbench(eager.scalar_type());
      tolerance = std::max(tolerance, allowed);
      if (!close) continue;
      const at::Tensor& actual = (*tensors)[match.tensors[i]];
      close = actual.scalar_type() == eager.scalar_type() && actual.sizes() == eager.sizes() &&
              all_close(actual, eager, allowed);
    }
    return close;
  }

  bool check_aliases(const json& aliases, const std::vector<size_t>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto alias = aliases.at(tensors[i]).get<std::string>();
      if (alias.empty() || side_.output_may_alias(i)) continue;
      return reject("aliasing", fmt::format("output {} shares its memory with {}", i, alias));
    }
    return true;
  }

  bool uses_kernels() {
    if (!verdict_.kernels.empty() || options_.judge.aten == "any") return true;
    return reject("no_kernel", "no generated kernel ran: the program hands the whole job back to PyTorch's operators");
  }

  // Launches that do nothing must change the outputs: what the kernels would write is then what fresh memory holds.
  bool differs_without_kernels(CallSource& source, EagerCalls& eager) {
    auto planned = source.next(1, 0);
    if (!planned.ok()) return fail(Outcome::worker_failed, planned.error().message);
    auto expected = eager.run(planned->batch, source);
    if (!expected.ok()) return fail(Outcome::worker_failed, expected.error().message);
    link_->set_limit(options_.judge.time_limit_s);
    Batch batch = planned->batch;
    batch.ghost = true;
    std::vector<CallChannel::Base> bases;
    for (const int64_t base : planned->fresh) bases.push_back({base, tensors_of(source.leaves(base))});
    const bool ran = channel_->prepare(batch, bases) && channel_->go();
    auto answer = ran ? channel_->fetch(0) : std::nullopt;
    if (!answer) return survives_ghost();
    const bool same =
        CallCheck(side_, source).gives_the_same({*planned, *expected, 0, eager.weights()}, *link_, *answer);
    if (!channel_->rest()) return fail(link_->failure());
    eager.drop(*std::move(expected));
    if (!same) return true;
    return reject("decoy", "the generated kernels do not matter: without them the outputs are the same");
  }

  // Kernels that copy, or that add zeros, stand beside operators that do the whole job. Where numbers of both signs do
  // not suit the model, a kernel that does its part well may copy too (`relu`): then two trials must agree.
  bool kernels_do_work() {
    link_->set_limit(options_.judge.time_limit_s);
    std::optional<bool> ends;  // with this
    const auto works = [&](const std::shared_ptr<const Trial>& trial) {
      auto answer = call(*trial, true);
      if (!answer)
        ends = survives_ghost();
      else if (answer->body.at("worked"))
        ends = true;
      return ends.has_value();
    };
    for (size_t i = 0; i < side_.stress_count(); ++i) {
      auto stress = side_.stress(i);
      if (stress.ok() && stress->kind == StressKind::signs && works(stress->trial)) return *ends;
    }
    for (size_t i = 0; i < std::min<size_t>(2, side_.trial_count()); ++i)
      if (auto trial = side_.trial(i); trial.ok() && works(*trial)) return *ends;
    return reject("decoy", "the generated kernels do not matter: they copy, or write what changes nothing");
  }

  // A program may raise where its kernels wrote nothing.
  bool survives_ghost() { return link_->failure().outcome == Outcome::runtime_error || fail(link_->failure()); }

  const ReferenceSide& side_;
  const CheckRequest& request_;
  const ExaminationOptions& options_;
  std::unique_ptr<CandidateLink> link_;
  std::optional<CallChannel> channel_;
  std::mt19937_64 secret_{std::random_device{}()};
  uint64_t memory_ = 0;                               // of the last trial
  double trials_left_ = options_.judge.time_limit_s;  // of what all trials share
  bool told_dropped_ = false;
  std::string lacking_;                               // parameters of the model's that the candidate has none for
  std::map<std::string, std::string> low_precision_;  // kernels with buffers of 16 bit: of which type
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
  std::vector<size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    examinations.push_back(std::make_unique<Examination>(side, requests[i], options));
    if (auto* failure = examinations[i]->get_ready(verified[i])) {
      verdicts[i] = *failure;
      continue;
    }
    contestants.push_back(examinations[i]->contestant());
    places.push_back(i);
  }
  auto given = side.trial(0);
  if (!given.ok()) {
    for (Verdict& verdict : verdicts) verdict.detail = given.error().message;
    return verdicts;
  }
  CallSource source(side, **given);
  given->reset();
  EagerCalls eager(side);
  if (!contestants.empty()) run_side_by_side(side, source, eager, contestants, {}, {options.judge, requests[0].time});
  for (size_t k = 0; k < places.size(); ++k) verdicts[places[k]] = examinations[places[k]]->finish(contestants[k]);
  return verdicts;
}

}  // namespace tilepilot::eval
