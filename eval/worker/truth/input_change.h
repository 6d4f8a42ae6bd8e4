// A secret change of an input: elements are multiplied by numbers from (7/8, 1] that a key gives, so that each differs
// from what the same base held in another call, zeros stay zeros, and a draw from an interval around zero stays in it.
// The judge and the candidate's process make the same tensor of the same base and key.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tilepilot::eval {

struct InputChange {
  uint64_t key = 0;         // 0: no change
  double from = 0, to = 1;  // of the memory that the tensor spans: where it applies
};

// Integers are never changed.
void change_elements(const at::Tensor& tensor, const InputChange& change);

}  // namespace tilepilot::eval
