// One trial: the inputs, weights and seed of a call, and what eager and the float64 replay make of them. Trials are
// made from their recipe whenever they are needed; only small ones are kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/runtime/cuda/driver.h"
#include "eval/graph/graph_uses.h"
#include "eval/torch/replay.h"
#include "eval/torch/sliced_replay.h"
#include "eval/worker/truth/compare/comparison.h"
#include "eval/worker/truth/number_places.h"
#include "eval/worker/truth/other_graph.h"
#include "eval/worker/truth/perturbation.h"
#include "eval/worker/truth/stress/stress.h"
#include "eval/worker/truth/stress/weight_sets.h"

namespace tilepilot::eval {

struct TrialRecipe {
  uint64_t input_seed = 0, forward_seed = 0;
  int weights = kGivenWeights;
  StressRecipe stress = {};
};

// A buffer that the model changes, or a parameter.
struct ChangedState {
  std::string name;
  bool is_buffer = true;
  size_t value = 0;  // of the graph
  Expected expected;
  bool is_read = true;        // what a call returns depends on it
  bool counts_calls = false;  // one integer, which a call makes larger by one
  bool is_input = false;      // see ParameterInfo
  // "the buffer `name`"
  std::string described() const;
  // A counter that nothing reads (`num_batches_tracked`) is told, not judged.
  bool is_told_only() const { return counts_calls && !is_read; }
};

// What earlier calls have left in buffers, by value of the graph: as eager has it, and in float64.
struct StateBefore {
  std::map<size_t, at::Tensor> eager, exact;
};

struct Trial {
  uint64_t forward_seed = 0;
  int weights = kGivenWeights;
  std::shared_ptr<const StateBefore> before;  // nullptr: the call is the first
  int numbers = 0;                            // strength of other_number() for those among the inputs; 0: as given
  bool keeps_round = false;                   // inputs are round numbers, and exact: roundings move none of them
  std::vector<c10::IValue> leaves;            // forward's inputs before the call
  std::vector<at::Tensor> inputs;             // the tensors among them
  std::vector<size_t> mutated;                // inputs that eager changes
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
  double stress_seconds = 2;                                   // for making stress trials; at least three are tried
  std::optional<at::ScalarType> precision = std::nullopt;      // outputs need be no better than that
  int64_t exact_bytes = kExactBytes;                           // float64 replays that take more are cut into slices
  int64_t idle_bytes = 0;                                      // of a GPU's memory, that may be kept when it is freed
  FindSlices find_slices = eval::find_slices;                  // how
  std::function<double()> begin_step = nullptr;                // before each trial; gives the seconds that it waits
};

class TrialMaker {
 public:
  static Result<std::unique_ptr<TrialMaker>> make(const Reference& reference, const ReferenceOptions& options);

  // Where replays run.
  State weights(int set) const { return weights_->make(set); }
  const WeightSets& weight_sets() const { return *weights_; }
  // As exported, on the processor.
  const State& exported_weights() const { return weights_->given(); }
  const Replay& eager() const { return *eager_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // Whether truths are made slice by slice.
  bool is_sliced() const { return exact_run_.slices.has_value(); }
  bool is_random() const { return exact_->is_random(); }
  // Leaves out of a set of weights what it may not change, given the usual inputs; whether it changes something still.
  bool leave_out_of(int set);

  const std::vector<SingledOut>& singled_out_values() const { return singled_out_; }

  Result<std::vector<c10::IValue>> fresh_inputs(uint64_t seed) const;
  Result<Trial> make_trial(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const;
  Result<Trial> make_trial(std::vector<c10::IValue> leaves, uint64_t forward_seed, int weights) const;
  // Without its truth.
  Result<Trial> run_eager(const TrialRecipe& recipe, const std::vector<InputFacts>& facts) const;
  // Calls one after another, each on the state that the one before has left. Ends with the call that eager cannot make.
  Result<std::vector<Trial>> make_chain(const std::vector<TrialRecipe>& recipes) const;
  struct Move {
    double epsilon = 0;
    uint64_t draw = 0;
    double times = 1;
  };
  struct Nudged {
    std::vector<at::Tensor> outputs;
    State state;  // what the call changes, by value of the graph; the rest is undefined
  };
  // The truth with inputs, weights and what nodes compute moved by up to half of `epsilon`, or so many times that.
  Result<Nudged> nudged_truth(const Trial& trial, Move move) const;
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
    double of_nodes = 0;       // the epsilon of what nodes compute
    bool keeps_round = false;  // round numbers stay, wherever they come up
  };

  TrialMaker(const Reference& reference, const ReferenceOptions& options) : reference_(reference), options_(options) {}
  Status prepare();
  std::vector<double> elements_of(const GraphUses& uses, int value);
  void leave_out_unfit_weights();
  // nullptr: there are no inputs.
  WeightSets::Fits fits_given_inputs() const;
  void find_read_state(const GraphUses& uses);
  bool may_be_refused(StressKind kind) const;
  // A GPU ends for good on an index outside of a table, which a counter that is moved may become, and on a probability
  // above one; a processor throws.
  Status try_on_host(const std::vector<c10::IValue>& leaves, const State& state) const;
  void find_transitions();
  void find_turning_points(const GraphUses& uses);
  void find_bounds();
  bool reads_state(const std::vector<c10::IValue>& leaves, const std::vector<size_t>& values,
                   const std::vector<std::string>& outputs) const;
  // Of a trial with leaves, seed, weights and all else that decides the call.
  Result<Trial> run_eager(Trial trial) const;
  Result<const OtherGraph*> graph_with(int numbers) const;
  State state_before(const Trial& trial) const;
  std::vector<c10::IValue> exact_leaves(const std::vector<c10::IValue>& leaves, Nudge nudge, c10::Device device) const;
  State exact_state_before(const Trial& trial, Nudge nudge, c10::Device device) const;
  // `versions`: of what became `after`, before the call. Large parameters are looked at only if it was written.
  std::vector<ChangedState> changed_state(const State& start, const State& before, const State& after,
                                          const std::vector<uint32_t>& versions) const;
  static std::vector<uint32_t> versions_of(const State& state);
  // Returns the state after the call.
  Result<State> add_truth(Trial& trial) const;
  // Of a trial's leaves and seed, with one of the weight sets; in slices if that is planned.
  Result<Truth> run_exact(const Trial& trial, Nudge nudge) const;
  // What the GPU cannot do (an operator without float64, too little memory), the processor does.
  using RunOn = std::function<Result<Truth>(c10::Device)>;
  Result<Truth> run_somewhere(const RunOn& run) const;
  Result<Truth> run_whole(const Trial& trial, Nudge nudge, c10::Device device) const;
  Result<Truth> run_slices(const Trial& trial, Nudge nudge, c10::Device device) const;
  Replay::AfterNode nudge_nodes(Nudge nudge, const OtherGraph* other = nullptr) const;
  // Candidates need the memory of the GPU that replays have used.
  void free_device() const;

  const Reference& reference_;
  ReferenceOptions options_;
  std::unique_ptr<WeightSets> weights_;
  std::set<size_t> unread_;              // values of buffers that calls change and whose outputs do not depend on them
  bool reads_whole_numbers_ = false;     // of buffers, other than to count on
  std::vector<bool> used_;               // by value of the graph: other nodes take it
  std::vector<SingledOut> singled_out_;  // by tensor among the inputs
  std::set<size_t> compared_;            // values that inputs are compared with: beside them lie others
  State recipe_constants_;
  TensorMap stored_;  // of the weights file
  std::unique_ptr<Replay> eager_, exact_;
  mutable std::map<int, std::unique_ptr<OtherGraph>> other_numbers_;  // by strength
  mutable ExactRun exact_run_;
  mutable bool slices_are_checked_ = false;
  mutable std::vector<std::string> notes_;
};

// Tensors among leaves.
std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& leaves);
// Deep copies, with the same strides.
std::vector<c10::IValue> copy_leaves(const std::vector<c10::IValue>& leaves, c10::Device device = c10::DeviceType::CPU);

}  // namespace tilepilot::eval
