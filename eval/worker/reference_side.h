// The judge's knowledge of the model: trials with secret seeds, what eager and the float64 replay give for each, and
// what error that allows. Made once, used for every candidate. What is kept is in the host's memory; replays run on the
// device that candidates run on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eval/torch/replay.h"
#include "eval/worker/comparison.h"

namespace tilepilot::eval {

struct Trial {
  uint64_t forward_seed = 0;
  int weights = 0;                  // index into ReferenceSide::weight_sets
  std::vector<c10::IValue> leaves;  // forward's inputs before the call
  std::vector<at::Tensor> inputs;   // the tensors among them
  std::vector<size_t> mutated;      // inputs that eager changes
  std::vector<Expected> outputs;
  std::vector<Expected> mutated_expected;  // of the inputs in `mutated`
};

struct ReferenceOptions {
  uint64_t seed = 0;  // secret
  int trials = 5;
  c10::Device device = c10::DeviceType::CPU;               // where replays run
  int64_t memory_bytes = INT64_MAX;                        // for all trials; less than two are never made
  std::optional<at::ScalarType> precision = std::nullopt;  // outputs need be no better than that
};

class ReferenceSide {
 public:
  static Result<std::unique_ptr<ReferenceSide>> make(Reference reference, const ReferenceOptions& options);

  const Reference& reference() const { return reference_; }
  const std::vector<Trial>& trials() const { return trials_; }
  // The model's state: as exported, and perturbed.
  const std::vector<State>& weight_sets() const { return weight_sets_; }
  // Allowances by output; for inputs that eager changes, by input.
  const Allowance& allowance(size_t output) const { return allowances_[output]; }
  // By `--dtype`: the model's own type is another one.
  bool is_asked_in_16_bit() const { return reference_.dtype == "fp16" || reference_.dtype == "bf16"; }
  // Whether eager's output shares memory with an input or weight.
  bool output_may_alias(size_t output) const { return aliases_[output]; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool degenerate() const { return degenerate_; }
  const Replay& eager() const { return *eager_; }
  c10::Device device() const { return options_.device; }
  // Fresh leaves for timed calls.
  Result<std::vector<c10::IValue>> fresh_inputs(uint64_t seed) const;
  // The expected outputs of a timed call.
  Result<std::vector<Expected>> expect(const std::vector<c10::IValue>& leaves, uint64_t seed) const;

 private:
  ReferenceSide(Reference reference, const ReferenceOptions& options)
      : reference_(std::move(reference)), options_(options) {}
  struct Truth {
    std::vector<at::Tensor> outputs;
    std::vector<c10::IValue> leaves;  // after the call
    std::string why_on_host;          // the GPU was to compute it; empty: it did
  };
  // How far inputs and weights are moved before a call.
  struct Nudge {
    double epsilon = 0;
    uint64_t seed = 0;
  };
  Status prepare();
  Status add_trial(int index);
  Status add_truth(Trial& trial);
  // Of a trial's leaves and seed, with one of the weight sets. What the GPU cannot do (an operator without float64, too
  // little memory), the processor does.
  Result<Truth> run_exact(const Trial& trial, Nudge nudge) const;
  Result<Truth> run_exact(const Replay& replay, const Trial& trial, Nudge nudge, c10::Device device) const;
  // Candidates need the memory of the GPU that replays have used.
  void free_device() const;
  void limit_trials();
  Status find_allowances();
  // Of an output's type, or of the precision that is asked for.
  double epsilon_of(const at::Tensor& output) const;
  Result<ScaledError> sensitivity(const Trial& trial, size_t output);
  void find_fixed_inputs();
  void find_degeneracy();
  bool trivial_answer_passes(const Expected& expected, const Allowance& allowance, const std::string& name);

  Reference reference_;
  ReferenceOptions options_;
  TensorMap weights_;
  std::vector<State> weight_sets_;
  State recipe_constants_;
  std::unique_ptr<Replay> eager_, exact_;
  std::vector<Trial> trials_;
  std::vector<std::vector<at::Tensor>> nudged_;  // the truth of trial 0 with inputs and weights moved by one rounding
  std::vector<Allowance> allowances_;
  std::vector<bool> aliases_;
  std::vector<std::string> notes_;
  bool degenerate_ = false;
};

// Tensors among leaves.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& leaves);
// Deep copies, with the same strides.
std::vector<c10::IValue> copy_leaves(const std::vector<c10::IValue>& leaves, c10::Device device = c10::DeviceType::CPU);

}  // namespace tilepilot::eval
