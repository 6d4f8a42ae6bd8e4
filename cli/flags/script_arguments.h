// `run SCRIPT ARGUMENTS...`: where our own command line ends and the script's begins.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tilepilot::cli {

// Whether the next argument belongs to this one: `--seed 3`, but not `--seed=3` or `--json`.
bool takes_the_next(const CLI::App& app, const std::string& argument);

// How many of the arguments are ours: up to the script's name if the command is `run`, else all.
int count_own_arguments(const CLI::App& app, int argc, char** argv);

// The others, without the `--` that may stand before them.
std::vector<std::string> script_arguments(int own, int argc, char** argv);

}  // namespace tilepilot::cli
