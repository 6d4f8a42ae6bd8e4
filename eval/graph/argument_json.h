// Arguments of exported graphs as JSON, in the reference file and on the wire (docs/reference-format.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

// Errors: `reference_invalid`. May throw what nlohmann::json throws on members of the wrong type.
Result<GraphArgument> argument_from_json(const nlohmann::json& json);
nlohmann::json to_json(const GraphArgument& argument);

}  // namespace tilepilot::eval
