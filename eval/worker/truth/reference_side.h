// The judge's knowledge of the model: trials with secret seeds, and what error eager and the float64 replay allow in
// each. Made once, used for every candidate. Of a trial its recipe and its allowances are kept; inputs and expected
// values only where they are small, else they are made again for each candidate, one trial at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/worker/truth/stress/stress_search.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

// A trial on inputs that `get_inputs` does not draw.
struct StressTrial {
  std::shared_ptr<const Trial> trial;
  std::vector<Allowance> allowances;  // by output
  std::vector<bool> judged = {};      // by output: the others are no numbers here, or what roundings have left
  bool judges_changes = true;         // likewise the inputs and buffers that the model changes
  StressKind kind = StressKind::none;
  bool keeps_apart = false;  // elements that differed still do: which of equals an output chose is open
};

class ReferenceSide {
 public:
  static Result<std::unique_ptr<ReferenceSide>> make(Reference reference, const ReferenceOptions& options);

  const Reference& reference() const { return reference_; }
  size_t trial_count() const { return recipes_.size(); }
  Result<std::shared_ptr<const Trial>> trial(size_t index) const;
  // Which weights trial `index` has.
  int weights_of_trial(size_t index) const { return recipes_[index].weights; }
  State weights(int set) const { return maker_->weights(set); }
  const State& exported_weights() const { return maker_->exported_weights(); }
  // Calls one after another from the given state, where what one leaves in buffers changes what the next returns; else
  // none. The first of them is made when it is asked for.
  Result<std::vector<std::shared_ptr<const Trial>>> chain() const;
  // Whether it does.
  bool reads_state() const { return reads_state_; }
  // Buffers that calls change and that are judged: name, and value of the graph.
  const std::vector<std::pair<std::string, size_t>>& judged_state() const { return judged_state_; }
  // Whether calls change their inputs.
  bool mutates_inputs() const { return mutates_inputs_; }
  // Allowances by output, in the trials on given inputs.
  const Allowance& allowance(size_t output) const { return allowances_[output]; }
  // Of an input or buffer that the model changes; `noise`, if it is defined, may be added to eager's own error.
  Allowance allowance_of_changed(const Expected& expected, const at::Tensor& noise = {}) const;
  // How far a trial's call leaves what it changes (ChangedState::value, floating numbers) from the truth, of eager and
  // of programs that round otherwise, by element: a mean that is zero but for roundings has no scale of its own. Empty
  // where the truth cannot be had.
  std::map<size_t, at::Tensor> state_noise(const Trial& trial) const;
  // How many stress trials there are; which do and what they allow is found when the first is asked for.
  size_t stress_count() const;
  Result<StressTrial> stress(size_t index) const;
  StressKind stress_kind(size_t index) const { return stress_[index].found.kind; }
  // A call as KernelBench's script makes it: weights as exported, inputs drawn on the processor under `seed`.
  Result<Trial> trial_by_seed(uint64_t seed) const { return maker_->make_by_seed(seed); }
  // By `--dtype`: the model's own type is another one.
  bool is_asked_in_16_bit() const { return reference_.dtype == "fp16" || reference_.dtype == "bf16"; }
  // Whether eager's output shares memory with an input or weight.
  bool output_may_alias(size_t output) const { return aliases_[output]; }
  const std::vector<std::string>& notes() const { return notes_; }
  // What stress could not show: kinds for which there was no time, or with which the model gives no numbers; known once
  // stress_count() is.
  const std::vector<std::string>& stress_notes() const { return stress_notes_; }
  // Whether its outputs are more than what roundings have left.
  bool is_decisive(const StressTrial& stress) const;
  bool degenerate() const { return degenerate_; }
  const Replay& eager() const { return maker_->eager(); }
  c10::Device device() const { return options_.device; }
  const std::shared_ptr<const runtime::cuda::Device>& gpu() const { return options_.gpu; }
  // Fresh leaves for other calls, on the device.
  Result<std::vector<c10::IValue>> fresh_inputs(uint64_t seed) const { return maker_->fresh_inputs(seed); }
  // Another call, with one of the weight sets.
  Result<Trial> trial_on(const std::vector<c10::IValue>& leaves, uint64_t seed, int weights) const {
    return maker_->make_trial(leaves, seed, weights);
  }
  // An output of a trial. What is wrong by little, or in few elements, is compared once more by what the inputs of this
  // very trial allow, of which more is found out then: their condition may be worse than that of others.
  Comparison compare_closely(const CandidateOutput& actual, const Trial& trial, size_t output,
                             const Allowance& allowance) const;
  // Whether outputs, or one of them, depend on which of equal elements an operator chooses.
  bool chooses() const { return std::find(open_.begin(), open_.end(), true) != open_.end(); }
  bool is_open(size_t output) const { return open_[output]; }
  // Whether the model draws random numbers.
  bool is_random() const { return maker_->is_random(); }

 private:
  ReferenceSide(Reference reference, const ReferenceOptions& options)
      : reference_(std::move(reference)), options_(options) {}
  // The errors of eager and of the moved truth in a trial: by output, by part.
  struct Measured {
    std::vector<std::vector<ScaledError>> eager, sensitivity;
    std::vector<IntegerDifferences> differences;  // between eager and the truth
  };
  Status prepare();
  Status measure_given_trials();
  Result<Allowance> allowance_of_trial(const Trial& trial, size_t output,
                                       const std::vector<std::optional<uint64_t>>& draws) const;
  Comparison compare_choices(const CandidateOutput& actual, const Trial& trial, size_t output, Comparison passed) const;
  Result<at::Tensor> where_roundings_lead(const at::Tensor& actual, const Trial& trial, size_t output,
                                          double roundings) const;
  // `draw`: of the moved truth; none: without it.
  Result<Measured> measure(const Trial& trial, std::optional<uint64_t> draw) const;
  std::vector<Allowance> allowances_from(const Trial& trial, const std::vector<Measured>& measured) const;
  // Of an output's type, or of the precision that is asked for.
  double epsilon_of(const at::Tensor& output) const;
  void keep_if_small(size_t index, Trial trial) const;
  static bool is_noise(const Measured& measured, size_t output);
  void find_stress_trials() const;
  double begin_step() const { return options_.begin_step ? options_.begin_step() : 0; }
  double try_plan(const StressPlan& plan, StressSearch& search) const;
  // `in_part`: also where some of the outputs say nothing.
  bool keep_stress(const TrialRecipe& recipe, const NumberPlaces& given, bool in_part) const;
  void note_fixed_inputs();
  void note_masks();
  void note_repetitions(const std::vector<at::Tensor>& inputs);
  static std::string digest_of_outputs(const Trial& trial);
  Result<bool> is_told_apart_by_other_weights(size_t output) const;
  Result<bool> is_constant_with_other_weights() const;
  Status find_degeneracy(const Trial& trial, const std::vector<Measured>& measured);

  Reference reference_;
  ReferenceOptions options_;
  std::unique_ptr<TrialMaker> maker_;
  std::vector<TrialRecipe> recipes_;
  std::vector<InputFacts> facts_;
  std::vector<SumLengths> sums_;                // by output
  std::vector<std::vector<OutputPart>> parts_;  // by output
  std::vector<Allowance> allowances_;
  std::vector<bool> aliases_;
  std::vector<bool> open_;  // by output: open_outputs()
  std::vector<std::string> notes_;
  std::vector<std::string> output_digests_;  // by trial
  bool degenerate_ = false, mutates_inputs_ = false, reads_state_ = false, jumps_ = false, one_decides_ = false;
  std::vector<std::pair<std::string, size_t>> judged_state_;
  // What is kept for the next candidate.
  mutable int64_t kept_bytes_ = 0;
  mutable std::map<size_t, std::shared_ptr<const Trial>> kept_;
  struct KeptStress {
    TrialRecipe recipe;
    StressTrial found;  // without its trial if that is large
  };
  mutable bool stress_is_known_ = false;
  mutable std::vector<KeptStress> stress_;
  mutable std::vector<std::string> stress_notes_;
  mutable std::vector<std::shared_ptr<const Trial>> chain_;
};

}  // namespace tilepilot::eval
