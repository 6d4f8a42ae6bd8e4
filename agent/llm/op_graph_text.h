// The op graph of a model with what each operator costs, as a table for a language model.
#pragma once

#include <string>
#include <vector>

#include "eval/preflight.h"

namespace tilepilot::agent {

struct OpGraphText {
  std::vector<std::string> rows;  // one an operator, in order: number, name, operands and results, cost
  std::string totals;             // costs of the whole, the roofline, exact shortcuts
  std::string signature;          // inputs, parameters and buffers
};
OpGraphText describe_graph(const eval::Reference& reference, const eval::Preflight& preflight);

}  // namespace tilepilot::agent
