// The op graph of a model with what each operator costs, as a table for a language model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/graph/preflight.h"
#include "eval/profile/eager_times.h"

namespace tilepilot::agent {

struct OpGraphText {
  // One an operator, in order: number, name, operands and results, cost. Of a long graph one a line of the model.
  std::vector<std::string> rows;
  std::string totals;     // costs of the whole, what eager spends where, the roofline, exact shortcuts
  std::string signature;  // inputs, parameters and buffers
};
// `eager`: as measured; nullopt: not known.
OpGraphText describe_graph(const eval::Reference& reference, const eval::Preflight& preflight,
                           const std::optional<eval::EagerTimes>& eager = std::nullopt);

}  // namespace tilepilot::agent
