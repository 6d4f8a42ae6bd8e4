// The model's graph with other numbers or flags among the inputs, and its replays. A flag may have a graph of its own,
// whose values are numbered otherwise.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "eval/torch/replay.h"

namespace tilepilot::eval {

// By value of the graph: whether other nodes take it.
std::vector<bool> used_values(const Graph& graph);

struct OtherGraph {
  Graph graph;
  std::vector<bool> used;
  std::optional<Replay> eager, exact;
  std::vector<int> from;  // by value: the model's own value that stands there, or -1; empty: all values are the same
  State own;              // what the model's own graph does not have

  // `numbers`: a strength (eval/graph/input_numbers.h). `stored`: of the weights file.
  static Result<std::unique_ptr<OtherGraph>> make(const Reference& reference, int numbers, const TensorMap& stored,
                                                  c10::Device device);
  // The tensors of a state of the model's own graph in their places here.
  State state_of(const State& state, bool exact_numbers, c10::Device device) const;
};

}  // namespace tilepilot::eval
