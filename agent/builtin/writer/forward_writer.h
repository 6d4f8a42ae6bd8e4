// `ModelNew.forward` from a plan: kernels and PyTorch calls in an order that respects data and effects, with the
// variable names a person would reuse.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/builtin/plan.h"

namespace tilepilot::agent::builtin {

struct ForwardText {
  std::vector<std::string> parameters;  // of `forward`, after self
  std::vector<std::string> lines;       // from `def forward`, without the class's indentation
  // Each is true where a number among the inputs is not the one that the graph holds: "s != 3.14".
  std::vector<std::string> other_numbers;
};

// Whether there are numbers among the inputs, which the graph holds as constants.
bool has_input_numbers(const eval::Reference& reference);

// `handles`: how forward calls each kernel of the plan ("self.softmax").
Result<ForwardText> write_forward(const eval::Reference& reference, const Plan& plan,
                                  const std::vector<std::string>& handles);

// "net.0.weight" as an attribute of self: "self.net[0].weight".
std::string parameter_path(const std::string& name);

}  // namespace tilepilot::agent::builtin
