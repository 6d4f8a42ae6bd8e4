// Where a program with wrong values goes wrong: in words, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::eval {

// "kernel `rows` (line 31) writes what `aten::softmax` (node 4) gives; kernel `out` (line 52) comes nearest to
// `aten::matmul` (node 6): 12 % of its elements are wrong, only rows 96 to 127". Empty: nothing is known.
std::string stages_text(const std::vector<StageCheck>& stages);

nlohmann::json to_json(const std::vector<StageCheck>& stages);
// May throw what nlohmann::json throws on another shape.
std::vector<StageCheck> stages_from_json(const nlohmann::json& list);

}  // namespace tilepilot::eval
