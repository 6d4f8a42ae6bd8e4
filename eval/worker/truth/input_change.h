// A secret change of an input: elements are multiplied by numbers from (7/8, 1] that a key gives, so that each differs
// from what the same base held in another call, zeros stay zeros, and a draw from an interval around zero stays in it.
// The judge and the candidate's process make the same tensor of the same base and key.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tilepilot::eval {

struct InputChange {
  uint64_t key = 0;         // 0: no change
  double from = 0, to = 1;  // of the elements, as they lie in memory: where it applies
};

// A copy on `device`, in memory of its own with the same strides.
at::Tensor copy_of(const at::Tensor& base, c10::Device device);
// Integers are never changed. @pre the tensor has no two elements in one place
void change_elements(at::Tensor tensor, const InputChange& change);

}  // namespace tilepilot::eval
