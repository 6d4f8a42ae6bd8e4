// Every tensor that a module keeps: parameters, buffers, and what plain attributes hold, directly or in lists, tuples,
// dictionaries and objects.
#pragma once

#include <string>
#include <vector>

#include "eval/host/tensors/tensor_object.h"

namespace tilepilot::eval {

struct HeldTensor {
  enum class Kind { parameter, buffer, attribute };  // buffer: persistent; attribute: not in state_dict
  std::string name;                                  // "net.0.weight", "packed[1]"
  at::Tensor tensor;
  Kind kind = Kind::attribute;
};

// Parameters and buffers first, in state_dict's order. Two modules built by the same steps give the same names in the
// same order.
std::vector<HeldTensor> held_tensors(const stage::Value& module);

}  // namespace tilepilot::eval
