// One trial: the inputs, weights and seed of a call, and what eager and the float64 replay make of them. Trials are
// made from their recipe whenever they are needed; only small ones are kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/runtime/cuda/driver.h"
#include "eval/torch/replay.h"
#include "eval/torch/sliced_replay.h"
#include "eval/worker/truth/comparison.h"
#include "eval/worker/truth/stress.h"

namespace tilepilot::eval {

struct TrialRecipe {
  uint64_t input_seed = 0, forward_seed = 0;
  int weights = 0;  // as TrialMaker::weights numbers them
  StressRecipe stress = {};
};

// A buffer that the model changes.
struct ChangedState {
  std::string name;
  size_t value = 0;  // of the graph
  Expected expected;
  bool is_read = true;        // what a call returns depends on it
  bool counts_calls = false;  // one integer, which a call makes larger by one
  // A counter that nothing reads (`num_batches_tracked`) is told, not judged.
  bool is_told_only() const { return counts_calls && !is_read; }
};

struct Trial {
  uint64_t forward_seed = 0;
  int weights = 0;
  std::vector<c10::IValue> leaves;  // forward's inputs before the call
  std::vector<at::Tensor> inputs;   // the tensors among them
  std::vector<size_t> mutated;      // inputs that eager changes
  std::vector<Expected> outputs;
  std::vector<Expected> mutated_expected;  // of the inputs in `mutated`
  std::vector<ChangedState> state;
  std::vector<bool> aliases;  // by output: eager's shares memory with an input, a weight or another output

  int64_t bytes() const;
};

struct ReferenceOptions {
  uint64_t seed = 0;  // secret
  int trials = 5;
  c10::Device device = c10::DeviceType::CPU;                   // where replays run, and tensors are
  std::shared_ptr<const runtime::cuda::Device> gpu = nullptr;  // that device, if it is one
  int64_t kept_bytes = int64_t{1} << 30;                       // of trials kept for the candidates to come
  double trial_seconds = 30;                                   // for all trials; less than two are never made
  double stress_seconds = 1.5;                                 // for making stress trials; at least three are tried
  std::optional<at::ScalarType> precision = std::nullopt;      // outputs need be no better than that
  int64_t exact_bytes = kExactBytes;                           // float64 replays that take more are cut into slices
  FindSlices find_slices = eval::find_slices;                  // how
};

inline constexpr int kMovedBuffers = 3, kStretchedWeights = 4;

class TrialMaker {
 public:
  static Result<std::unique_ptr<TrialMaker>> make(const Reference& reference, const ReferenceOptions& options);

  // The model's state: as exported (0), moved a little (1), drawn anew (2), with other values of buffers alone
  // (kMovedBuffers), or drawn anew and of other signs and sizes (kStretchedWeights); where large, made again each time.
  State weights(int set) const;
  const Replay& eager() const { return *eager_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // Whether truths are made slice by slice.
  bool is_sliced() const { return exact_run_.slices.has_value(); }
  bool is_random() const { return exact_->is_random(); }
  bool has_movable_buffers() const;
  bool has_parameters() const;

  Result<std::vector<c10::IValue>> fresh_inputs(uint64_t seed) const;
  Result<Trial> make_trial(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const;
  Result<Trial> make_trial(std::vector<c10::IValue> leaves, uint64_t forward_seed, int weights) const;
  struct Move {
    double epsilon = 0;
    uint64_t draw = 0;
    double times = 1;
  };
  // The outputs of the truth with inputs, weights and what nodes compute moved by up to half of `epsilon`, or so many
  // times that.
  Result<std::vector<at::Tensor>> nudged_truth(const Trial& trial, Move move) const;
  // What eager gives for inputs that a seed draws on the processor, as scripts around PyTorch do, with the inputs.
  Result<Trial> make_by_seed(uint64_t seed) const;

 private:
  struct Truth {
    std::vector<at::Tensor> outputs;
    std::vector<c10::IValue> leaves;  // after the call
    State state;                      // after the call
    std::string why_on_host;          // the GPU was to compute it; empty: it did
    std::string why_not_in_slices;    // it was made in slices, and is wrong; empty: it is right
  };
  // How far inputs and weights are moved before a call.
  struct Nudge {
    double epsilon = 0;
    uint64_t seed = 0;
    double of_nodes = 0;  // the epsilon of what nodes compute
  };

  TrialMaker(const Reference& reference, const ReferenceOptions& options) : reference_(reference), options_(options) {}
  Status prepare();
  void leave_out_unfit_weights();
  void find_read_state();
  bool reads_state(const std::vector<c10::IValue>& leaves, const std::vector<size_t>& values,
                   const std::vector<std::string>& outputs) const;
  Result<Trial> run_eager(std::vector<c10::IValue> leaves, uint64_t forward_seed, int weights) const;
  std::vector<ChangedState> changed_state(const State& before, const State& after) const;
  Status add_truth(Trial& trial) const;
  // Of a trial's leaves and seed, with one of the weight sets; in slices if that is planned.
  Result<Truth> run_exact(const Trial& trial, Nudge nudge) const;
  // What the GPU cannot do (an operator without float64, too little memory), the processor does.
  using RunOn = std::function<Result<Truth>(c10::Device)>;
  Result<Truth> run_somewhere(const RunOn& run) const;
  Result<Truth> run_whole(const Trial& trial, Nudge nudge, c10::Device device) const;
  Result<Truth> run_slices(const Trial& trial, Nudge nudge, c10::Device device) const;
  Replay::AfterNode nudge_nodes(Nudge nudge) const;
  // Candidates need the memory of the GPU that replays have used.
  void free_device() const;

  const Reference& reference_;
  ReferenceOptions options_;
  State given_weights_;
  std::set<size_t> unread_;  // values of buffers that calls change and whose outputs do not depend on them
  std::vector<bool> used_;   // by value of the graph: other nodes take it
  bool redraws_ = true;      // else the third set is the second
  mutable std::map<int, State> kept_weights_;
  State recipe_constants_;
  std::unique_ptr<Replay> eager_, exact_;
  mutable ExactRun exact_run_;
  mutable bool slices_are_checked_ = false;
  mutable std::vector<std::string> notes_;
};

// Tensors among leaves.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& leaves);
// Deep copies, with the same strides.
std::vector<c10::IValue> copy_leaves(const std::vector<c10::IValue>& leaves, c10::Device device = c10::DeviceType::CPU);

}  // namespace tilepilot::eval
