// What clients are told of a tool: its arguments as JSON Schema, written from the options of its command.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/mcp/protocol.h"
#include "cli/mcp/setup.h"
#include "cli/mcp/tools.h"

namespace tilepilot::cli::mcp {

// The option of the tool's command, or one that all commands have.
const CLI::Option& option_of(const CLI::App& app, const Tool& tool, std::string_view name);
// "--time-limit" is the argument `time_limit`.
std::string argument_of(const CLI::Option& option);
// How the option is written: "--time-limit"; empty: it is positional.
std::string flag_of(const CLI::Option& option);
// Type, values, bounds, default and meaning of an option.
nlohmann::json schema_of(const CLI::Option& option);

inline constexpr std::string_view kSourceSuffix = "_source";
inline constexpr std::string_view kTimeLimit = "timeout_s";
inline constexpr double kLongestCall = 86400;  // in seconds

// An object schema of all arguments. It has no `anyOf` at its top, which some language models' interfaces refuse.
nlohmann::json input_schema(const Setup& setup, const Tool& tool);
// A row of `tools/list`.
nlohmann::json describe(const Setup& setup, const Tool& tool, Revision revision);

}  // namespace tilepilot::cli::mcp
