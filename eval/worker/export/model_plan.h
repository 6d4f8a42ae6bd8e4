// From two calls of `forward`, as traces of their launches, to a plan of what the whole model launches: which memory is
// an input's, a weight's or an output's, and where what kernels hand to each other lies in a workspace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/export/interface.h"
#include "eval/worker/export/launch_trace.h"

namespace tilepilot::eval {

struct NamedView {
  std::string name;
  runtime::TensorView view;
};

struct TracedCall {
  std::vector<NamedView> outputs;
  const LaunchTrace* trace = nullptr;
};

// Both calls got the same inputs and weights; nothing of the first one was freed before the second.
struct TracedModel {
  std::vector<NamedView> inputs, weights;
  TracedCall first, second;
  // The library's kernels, and the number of a launch's kernel among them.
  const std::vector<exporting::Kernel>* kernels = nullptr;
  std::function<size_t(const ir::Program&)> kernel_of;
  std::function<int(Span)> line_of;
};

// Errors (of kind `forbidden`): why there is no such plan, with the line.
Result<exporting::Model> plan_model(const TracedModel& traced);

}  // namespace tilepilot::eval
