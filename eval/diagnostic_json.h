// Diagnostics between processes: all of one as JSON, and back. For people and other programs there is render_json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot::eval {

nlohmann::json to_json(const Diagnostic& diagnostic);
// May throw what nlohmann::json throws on another shape.
Diagnostic diagnostic_from_json(const nlohmann::json& json);

}  // namespace tilepilot::eval
