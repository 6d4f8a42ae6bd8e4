// Whether a candidate returned the structure that the model returns: the same nesting, keys and constants.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

struct StructureMatch {
  std::vector<size_t> tensors;  // for each tensor of the model's outputs, in order: which of the candidate's
  std::string mismatch;         // empty if they agree
};
// A tuple and a list count as the same.
StructureMatch match_structure(const Graph& forward, const nlohmann::json& structure);

// `outputs` of the recipe of inputs with its values numbered as its tensors come: 0, 1, ...
GraphArgument tensor_numbers(const GraphArgument& outputs);

}  // namespace tilepilot::eval
