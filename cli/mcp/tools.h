// The tools that the server offers, as a table: each is a command of this program. What an argument means, its type and
// its default come from the command's own options.
#pragma once

#include <string_view>
#include <vector>

namespace tilepilot::cli::mcp {

// A file that the command reads. A client names it (`model`), or gives its text (`model_source`).
struct ToolFile {
  std::string_view argument;
  std::string_view option;  // of the command: "--reference", or a positional one
};

// An option of the command that clients may give. The argument is the option's long name, with `_` for `-`.
struct ToolOption {
  // `meaning`: where it is another one than on the command line.
  constexpr ToolOption(const char* name, const char* meaning = "") : name(name), meaning(meaning) {}
  std::string_view name, meaning;
};

// A member of the command's answer that agents look at.
struct ToolOutput {
  std::string_view name, type, meaning;
};

struct Tool {
  std::string_view name, title;
  std::string_view description;  // what it does, and when to use it
  std::vector<std::string_view> command;
  std::vector<ToolFile> files;
  std::vector<ToolOption> options;
  std::vector<std::string_view> always;  // arguments of every call
  std::string_view text_with = "";       // an argument without which the command's `text` is left out: it is long
  std::vector<ToolOutput> outputs;
  bool writes = false;      // `output` and what it names; a call may replace a file
  bool open_world = false;  // may ask a language model elsewhere
  int time_limit_s = 600;   // of a call that names none; 0: none, the command ends itself
};

const std::vector<Tool>& tools();
const Tool* find_tool(std::string_view name);

}  // namespace tilepilot::cli::mcp
