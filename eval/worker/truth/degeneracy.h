// Whether a trivial answer would pass for an output: then a verdict about it means little.
#pragma once

#include <string>
#include <vector>

#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

struct Triviality {
  std::string answer;      // "zeros", "its mean", "a copy of an input"; empty: none passes
  bool by_nature = false;  // the answer is as good as eager's, not the allowance too wide
  // The allowance under which no trivial answer passes and eager does: use it instead.
  std::vector<ScaledError> narrowed = {};
};
// `allowance`: of the output; `eager`: its own errors, by part.
Triviality find_triviality(const Expected& expected, const Allowance& allowance, const std::vector<ScaledError>& eager,
                           const std::vector<at::Tensor>& inputs);
// Whether the graph does more than move data.
bool computes(const Graph& graph);

}  // namespace tilepilot::eval
