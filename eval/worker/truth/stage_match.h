// Which values of a model the launches of a program wrote: what each launch wrote is compared with every value of as
// many elements that the model computes on the way, whatever its shape and element type.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "eval/graph/reference.h"
#include "eval/judge.h"

namespace tilepilot::eval {

struct WrittenByLaunch {
  std::string kernel;
  int line = 0;
  std::vector<at::Tensor> tensors;
};

class StageMatch {
 public:
  explicit StageMatch(const std::vector<WrittenByLaunch>& launches);

  // A value of the model: of a node of its graph, from 0 on, or an input or weight.
  static constexpr int kGiven = -1;
  void add_value(int node, const at::Tensor& value);

  // As in Verdict. The graph is the one that nodes are of.
  std::vector<StageCheck> checks(const Graph& graph) const;

 private:
  // How one tensor stands to the values so far.
  struct Written {
    size_t launch;
    at::Tensor elements;  // in a row
    bool is_constant = false;
    bool is_matched = false;
    int node = kGiven;  // the one that it matches, or else the one that it comes nearest
    bool is_near = false;
    double fraction_wrong = 1, correlation = -1;  // against the nearest
    at::Tensor nearest;
  };
  // Of a launch: it wrote a value of a node; inputs, or nothing that can be compared; one number everywhere; other
  // things.
  enum class State { right, copies, constant, other };

  void compare(Written& written, int node, const at::Tensor& elements, const at::Tensor& value);
  State state_of(size_t launch) const;
  const Written* nearest_of(size_t launch) const;
  StageCheck check_of(size_t launch, const Written* written, const Graph& graph) const;

  std::vector<WrittenByLaunch> launches_;
  std::vector<Written> written_;
};

}  // namespace tilepilot::eval
