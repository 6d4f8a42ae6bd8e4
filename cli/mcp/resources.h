// What clients can read beside calling tools: the tile language, as this compiler takes it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tilepilot::cli::mcp {

// The result of `resources/list`.
nlohmann::json list_resources();
// The result of `resources/read`; nothing: there is no such resource.
std::optional<nlohmann::json> read_resource(const std::string& uri);

}  // namespace tilepilot::cli::mcp
