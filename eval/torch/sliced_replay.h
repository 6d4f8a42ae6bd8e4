// Runs a graph in float64 slice by slice, as eval/graph/graph_slices.h planned it: only a slice of the inputs and of
// what nodes make is in memory in float64, beside the whole weights and outputs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "eval/graph/graph_slices.h"
#include "eval/torch/replay.h"

namespace tilepilot::eval {

class SlicedReplay {
 public:
  // `run` has slices; `graph` is needed during the call alone.
  static Result<SlicedReplay> prepare(const Graph& graph, const ExactRun& run, c10::Device device);

  struct Hooks {
    // A slice of an input (of a whole input: slice 0) in float64, on the device.
    std::function<at::Tensor(const at::Tensor& part, size_t input, int64_t slice)> widen;
    // What is called after the nodes of a slice; empty: nothing. A node whose results are whole must be left the same
    // results in every slice.
    std::function<Replay::AfterNode(int64_t slice)> after_node = {};
  };
  // Inputs in their own types, the state in float64 on the device. Both stay as they are.
  struct Call {
    const std::vector<c10::IValue>& inputs;
    const State& state;
    const Hooks& hooks;
  };
  Result<std::vector<at::Tensor>> run(const Call& call) const;

  // A slice of `run`, or a shifted one. The cut outputs are those parts of the whole's.
  struct Range {
    int64_t begin = 0, parts = 0, slice = 0;
  };
  Result<std::vector<at::Tensor>> run_slice(const Range& range, const Call& call) const;
  std::vector<Range> ranges() const;
  // A slice that holds parts of two slices of `run`.
  Range shifted_slice() const;
  // The parts of an output that belong to a range. @pre the output is whole
  at::Tensor part_of(const at::Tensor& output, size_t index, const Range& range) const;

  bool is_cut(int value) const { return slices_.cuts[static_cast<size_t>(value)].has_value(); }

 private:
  // Slices of a length have a graph of their own, with its sizes.
  struct Length {
    int64_t parts = 0;
    std::unique_ptr<const Graph> graph;
    std::unique_ptr<const Replay> replay;
  };
  SlicedReplay(GraphSlices slices, int64_t parts, c10::Device device)
      : slices_(std::move(slices)), parts_(parts), device_(device) {}
  c10::IValue slice_of(const c10::IValue& value, size_t id, const Range& range) const;
  std::vector<at::Tensor> whole_outputs() const;
  std::vector<c10::IValue> whole_leaves(const Call& call) const;
  Result<std::vector<at::Tensor>> run_slice(const Range& range, const Call& call,
                                            std::vector<c10::IValue> leaves) const;

  GraphSlices slices_;
  int64_t parts_;
  c10::Device device_;
  std::vector<Length> lengths_;
  std::vector<int> inputs_, outputs_;  // values of the graph; outputs that are tensors
};

}  // namespace tilepilot::eval
