// A script: a program that a person runs. Other than a candidate that is judged, it has arguments, `argparse`, and
// those parts of `sys`, `os` and `time` that neither open nor list files; and it imports the files beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

struct Script {
  std::string path;
  std::vector<std::string> arguments;  // without the script's name
};

// Call it before the script runs.
void install_script(Interpreter& interpreter, const Script& script);

// The exit code that an error asks for if it is a SystemExit, after its message is written to standard error; nullopt
// for every other error.
std::optional<int> exit_status(Interpreter& interpreter, const Diagnostic& error);

}  // namespace tilepilot::stage
