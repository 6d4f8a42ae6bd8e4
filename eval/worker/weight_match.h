// Which of the model's weights goes into which tensor of a candidate.
#pragma once

#include <string>
#include <vector>

#include "eval/host/tensor_object.h"

namespace tilepilot::eval {

struct WeightMatch {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;  // destination, source
  std::string note;                                      // what is unusual about the match; may be empty
  std::string mismatch;                                  // why there is none; empty if there is one
};

// By name. If the candidate has other names, but its tensors agree with the model's parameters in order, shape and
// element type, in order. Buffers of the model may be absent from the candidate, parameters may not.
WeightMatch match_weights(const std::vector<NamedTensor>& candidate, const std::vector<NamedTensor>& model);

}  // namespace tilepilot::eval
