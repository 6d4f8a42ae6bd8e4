// A secret change of an input, so that no call sees what another one saw. The judge and the candidate's process make
// the same tensor of the same base and key.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tilepilot::eval {

// What may be changed so that the input stays one of its kind.
enum class ChangeRule {
  none,        // integers, masks
  one_factor,  // all elements by one number from (7/8, 1]: order, zeros and proportions stay
  rows,        // each slice along the first axis by one of its own; of symmetric matrices the columns alike
  factors,     // each element by one of its own
  alike,       // elements are drawn one like the other from an interval that begins at zero: they change places, too
  symmetric,   // and the interval lies around zero: signs change, too
};

struct InputChange {
  uint64_t key = 0;         // 0: no change
  double from = 0, to = 1;  // of the memory that the tensor spans: where it applies; in a part nothing changes places
};

// @pre the tensor is floating, unless the rule is `none`
void change_elements(const at::Tensor& tensor, const InputChange& change, ChangeRule rule);

}  // namespace tilepilot::eval
