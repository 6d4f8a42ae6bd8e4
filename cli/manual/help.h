// What the command line says of itself: version, options that every command has, and commands that it does not know.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/environment.h"

namespace tilepilot::cli {

// "tilepilot 0.1.0 (commit 1a2b3c4d5e6f)"
std::string version_text(const Environment& environment);

// Adds the options of `app` itself to the help of each of its commands.
void add_common_help(CLI::App& app);
// What a command's help ends with, without those.
std::string own_footer(const CLI::App& command);

// Empty, or what to say if the first argument that is no option names no command.
std::string unknown_command(const CLI::App& app, int argc, char** argv);

// A finite number between two others.
CLI::Validator number_within(double least, double most);

// Shows what an option may be, and accepts everything: whoever reads the value knows more to say of a wrong one.
CLI::Validator named_choices(const auto& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + std::string(name);
  return CLI::Validator("{" + text + "}");
}

}  // namespace tilepilot::cli
