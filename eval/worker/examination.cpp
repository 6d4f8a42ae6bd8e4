#include "eval/worker/examination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <set>

#include "eval/argument_json.h"
#include "eval/torch/element_type.h"
#include "eval/worker/candidate_link.h"
#include "eval/worker/digest.h"
#include "eval/worker/output_structure.h"
#include "eval/worker/paired_timing.h"
#include "eval/worker/poison.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

std::set<int> used_values(const Graph& graph) {
  std::set<int> used;
  auto use = [&](int id) { used.insert(id); };
  for (auto& node : graph.nodes) {
    for (auto& argument : node.args) for_each_value(argument, use);
    for (auto& [name, argument] : node.kwargs) for_each_value(argument, use);
  }
  for_each_value(graph.outputs, use);
  return used;
}

class Examination {
 public:
  Examination(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options)
      : side_(side), request_(request), options_(options) {}

  Verdict run() {
    verdict_.notes = side_.notes();
    verdict_.degenerate = side_.degenerate();
    if (start() && load() && run_trials(side_.trials().size()) && uses_kernels() && kernels_matter()) time();
    return std::move(verdict_);
  }

  // The two trials are those that timing compares launches with (candidate_process.cpp).
  Verdict run_again(const Verdict& verified) {
    verdict_.degenerate = side_.degenerate();
    if (start() && load() && run_trials(std::min<size_t>(2, side_.trials().size()))) {
      verdict_ = verified;
      time();
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
    return false;
  }

  bool start() {
    auto link = CandidateLink::start(options_.executable, options_.judge.threads, request_.source);
    if (!link.ok()) return fail(Outcome::worker_failed, link.error().message);
    link_ = *std::move(link);
    link_->set_limit(options_.judge.time_limit_s);
    return true;
  }

  // The weights' names and values, in state_dict order.
  json weight_names() const {
    json names = json::array();
    auto used = used_values(side_.reference().forward);
    for (auto& parameter : side_.reference().parameters) {
      if (parameter.value < 0) continue;
      names.push_back({{"name", parameter.name},
                       {"buffer", parameter.is_buffer},
                       {"storage", parameter.tensor},
                       {"used", used.count(parameter.value) != 0}});
    }
    return names;
  }
  std::vector<at::Tensor> weight_values(int set) const {
    std::vector<at::Tensor> values;
    for (auto& parameter : side_.reference().parameters) {
      if (parameter.value < 0) continue;
      values.push_back(side_.weight_sets()[static_cast<size_t>(set)][static_cast<size_t>(parameter.value)]);
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
                    {"init_inputs", to_json(reference.init_inputs)},
                    {"weights", weight_names()}};
    auto answer = link_->ask(request, {weight_values(0)});
    if (!answer) return fail(link_->failure());
    for (auto& note : answer->body.at("notes")) verdict_.notes.push_back(note);
    lacking_ = answer->body.at("lacking");
    if (!lacking_.empty()) verdict_.notes.push_back("the candidate has no weights for the model's " + lacking_);
    return true;
  }

  // A model's state is what it was at the start of each trial: buffers that forward changes are set back.
  bool send_weights(int set) {
    if (side_.reference().parameters.empty()) return true;
    auto answer = link_->ask({{"op", "weights"}, {"set", set}}, {weight_values(set)});
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

  std::optional<Message> call(const Trial& trial, bool ghost, uint8_t poison = kPoisonNan) {
    json request = {{"op", "forward"},
                    {"arguments", to_json(tensor_numbers(side_.reference().inputs.outputs))},
                    {"seed", trial.forward_seed},
                    {"return_inputs", trial.mutated},
                    {"keep", !ghost},
                    {"poison", poison},
                    {"ghost", ghost}};
    return link_->ask(request, {trial.inputs});
  }

  bool run_trials(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      auto& trial = side_.trials()[i];
      if (i > 0 && !send_weights(trial.weights)) return false;
      auto answer = call(trial, false);
      if (!answer) return fail(link_->failure());
      if (!check_trial(static_cast<int>(i), trial, *answer)) return false;
    }
    return true;
  }

  bool check_trial(int number, const Trial& trial, const Message& answer) {
    auto& body = answer.body;
    verdict_.kernels = body.at("kernels").get<std::vector<std::string>>();
    low_precision_ = body.at("low_precision").get<std::map<std::string, std::string>>();
    auto match = match_structure(side_.reference().forward, body.at("structure"));
    if (!match.mismatch.empty()) return fail(Outcome::wrong_shape, match.mismatch);
    auto tensors = unpack_tensors(body.at("tensors"), answer.descriptors.at(0));
    size_t outputs = body.at("outputs");
    if (!tensors.ok() || tensors->size() != outputs + trial.mutated.size()) {
      return fail(Outcome::worker_failed, "outputs did not arrive whole");
    }
    auto strides = output_strides(body.at("tensors"));
    for (size_t i = 0; i < match.tensors.size(); ++i) {
      if (!check_output(number, trial, {i, match.tensors[i]}, {*tensors, strides})) return false;
    }
    if (!check_inputs(trial, body, *tensors, outputs)) return false;
    if (body.at("earlier_changed").get<bool>()) {
      return fail(Outcome::rejected, "an output changed after a later call: the program returns memory it uses again");
    }
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
      Allowance allowance{input_allowance(expected), 0};
      CandidateOutput actual{tensors[outputs + which], expected.eager.strides().vec()};
      auto comparison = compare(actual, expected, allowance);
      if (comparison.outcome != Outcome::verified) {
        return fail(Outcome::mutated_input,
                    fmt::format("input {} was changed otherwise than the model does: {}", i, comparison.detail));
      }
    }
    return true;
  }

  static ScaledError input_allowance(const Expected& expected) {
    ToleranceBasis basis;
    basis.epsilon = machine_epsilon(element_type_name(expected.eager.scalar_type()));
    if (expected.eager.is_floating_point()) basis.eager = scaled_error(expected.eager, expected);
    return allowed_error(basis);
  }

  bool check_aliases(const json& aliases, const std::vector<size_t>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto alias = aliases.at(tensors[i]).get<std::string>();
      if (alias.empty() || side_.output_may_alias(i)) continue;
      return fail(Outcome::rejected, fmt::format("output {} shares its memory with {}", i, alias));
    }
    return true;
  }

  bool uses_kernels() {
    if (!verdict_.kernels.empty()) return true;
    return fail(Outcome::rejected,
                "no generated kernel ran: the program hands the whole job back to PyTorch's operators");
  }

  // Launches that do nothing must change the outputs, whatever number fresh memory then holds in place of theirs: NaN
  // alone would also show through a kernel whose result is multiplied by zero.
  bool kernels_matter() {
    if (!send_weights(side_.trials()[0].weights)) return false;
    for (uint8_t poison : {kPoisonNan, kPoisonFinite, kPoisonZero}) {
      // Where zeros pass, zeros may be what the kernels compute.
      if (poison == kPoisonZero && side_.degenerate()) continue;
      if (!differs_without_kernels(poison)) return false;
    }
    return true;
  }

  bool differs_without_kernels(uint8_t poison) {
    auto& trial = side_.trials()[0];
    auto answer = call(trial, true, poison);
    if (!answer) return link_->failure().outcome == Outcome::runtime_error || fail(link_->failure());
    auto match = match_structure(side_.reference().forward, answer->body.at("structure"));
    auto tensors = unpack_tensors(answer->body.at("tensors"), answer->descriptors.at(0));
    if (!match.mismatch.empty() || !tensors) return true;
    auto strides = output_strides(answer->body.at("tensors"));
    for (size_t i = 0; i < match.tensors.size(); ++i) {
      CandidateOutput actual{(*tensors)[match.tensors[i]], strides[match.tensors[i]]};
      if (!passes(actual, trial.outputs[i], side_.allowance(i))) return true;
    }
    return fail(
        Outcome::rejected,
        poison == kPoisonNan
            ? "the generated kernels do not matter: without them the outputs are the same"
            : "the generated kernels do not matter: with other numbers in place of theirs the outputs are the same");
  }

  void time() {
    verdict_.outcome = Outcome::verified;
    if (!request_.time || !send_weights(0)) return;
    auto failure = time_pair(side_, *link_, options_.judge, verdict_);
    if (failure) fail(*failure);
  }

  const ReferenceSide& side_;
  const CheckRequest& request_;
  const ExaminationOptions& options_;
  std::unique_ptr<CandidateLink> link_;
  bool told_dropped_ = false;
  std::string lacking_;                               // parameters of the model's that the candidate has none for
  std::map<std::string, std::string> low_precision_;  // kernels with buffers of 16 bit: of which type
  Verdict verdict_;
};

}  // namespace

Verdict examine(const ReferenceSide& side, const CheckRequest& request, const ExaminationOptions& options,
                const Verdict* verified) {
  Examination examination(side, request, options);
  return verified ? examination.run_again(*verified) : examination.run();
}

}  // namespace tilepilot::eval
