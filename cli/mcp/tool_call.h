// A call of a tool: its command runs as a process of its own, and its answer becomes the tool's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/mcp/protocol.h"
#include "cli/mcp/setup.h"
#include "cli/mcp/tools.h"
#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot::cli::mcp {

struct ToolAnswer {
  std::vector<std::string> texts;  // for a language model to read
  nlohmann::json structured;       // the command's own answer, an object
  // The command could not do its work. A program that does not compile, or is not verified, is an answer.
  bool is_error = false;
};

struct CallWatch {
  int abandon = -1;                                     // a socket: the command is ended when its other side closes
  std::function<void(const std::string&)> on_progress;  // told the command's latest whole line
};

// Wrong arguments, too, are an answer, which says what is expected.
ToolAnswer call_tool(const Setup& setup, const Tool& tool, const nlohmann::json& arguments, const CallWatch& watch);

// An answer that is an error of this server's own.
ToolAnswer failed_call(const Diagnostic& error);

// The result of `tools/call`.
nlohmann::json result_of(const ToolAnswer& answer, Revision revision);

}  // namespace tilepilot::cli::mcp
