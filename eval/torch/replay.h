// Replays an exported graph operator by operator through LibTorch's dispatcher: what eager would run, in the same
// order, with the same use of the random generator. In float64 the same graph gives the truth that errors are measured
// against.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "eval/graph/reference.h"
#include "eval/torch/safetensors.h"

namespace tilepilot::eval {

enum class Precision {
  exported,  // the element types of the export
  exact,  // float64 for every floating type; random operators draw as in the export, so that both see the same numbers
};

// Tensors by value id, for the values that are there before the first node: parameters, buffers, constants.
using State = std::vector<at::Tensor>;

// The exported state. Tied parameters share memory, as in the model. Buffers and constants are private copies;
// parameters lie where `weights` has them, in the mapped file: what writes them works on a copy_state.
Result<State> make_state(const Graph& graph, const Reference& reference, const TensorMap& weights);
// Another private copy; `exact`: in float64.
State copy_state(const State& state, bool exact, c10::Device device = c10::DeviceType::CPU);

class Replay {
 public:
  // Looks up every operator. `graph` must live as long as the result; all tensors are on `device`, whatever devices the
  // export names. Errors: an operator this LibTorch lacks.
  static Result<Replay> prepare(const Graph& graph, Precision precision = Precision::exported,
                                c10::Device device = c10::DeviceType::CPU);
  Replay(Replay&&) noexcept;
  ~Replay();

  // Called with what a node made before others use it.
  using AfterNode = std::function<void(const GraphNode& node, const std::vector<c10::IValue>& operands,
                                       std::vector<c10::IValue>& results)>;

  // `inputs` stand for graph.inputs, in order. Values are freed after their last use; in-place operators change
  // `inputs` and `state` as eager would. Returns the tensors that graph.outputs mentions, in order.
  Result<std::vector<at::Tensor>> run(const std::vector<c10::IValue>& inputs, const State& state,
                                      const AfterNode& after_node = {}) const;

  // Whether operators draw random numbers. @pre Precision::exact
  bool is_random() const;

  // Operators that have no form for the export's 16-bit type here, with that type ("aten::avg_pool3d in float16"): they
  // computed in float32, and the results were rounded. Known after a run.
  const std::set<std::string>& widened() const;

 private:
  class Plan;
  explicit Replay(std::unique_ptr<Plan> plan);
  std::unique_ptr<Plan> plan_;
};

// The inputs of one trial: get_inputs() replayed from `seed`, leaf by leaf. Leaves that are not tensors are None; their
// values stand in reference.inputs.outputs. The leaves are on `device`.
Result<std::vector<c10::IValue>> make_inputs(const Reference& reference, const State& constants, uint64_t seed,
                                             c10::Device device = c10::DeviceType::CPU);

}  // namespace tilepilot::eval
