// A script: a program that a person runs. Other than a candidate that is judged, it has arguments, `argparse`, and
// those parts of `sys`, `os` and `time` that neither open nor list files; and it imports the files beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

// A module written in Python whose text is part of this program.
struct EmbeddedModule {
  std::string_view name;  // dotted
  const char* text;
};

struct Script {
  std::string path;
  std::vector<std::string> arguments = {};   // without the script's name
  std::vector<EmbeddedModule> modules = {};  // beside those of the standard library
};

// Call it before the script runs.
void install_script(Interpreter& interpreter, const Script& script);

// The module written in Python that is part of `parent`, such as `torch.testing` of `torch`. Null: there is none, or
// what runs is no script.
Result<std::shared_ptr<ModuleObject>> find_part(Interpreter& interpreter, std::string_view parent, Name part,
                                                Span span);

// Where the script itself is at, when an embedded module asks: the innermost call in progress that stands in its files.
Span script_position(const Interpreter& interpreter, Span otherwise);

// An error as the script's author should see it: what happened inside an embedded module is reported where the script
// called it.
Diagnostic seen_from_script(const SourceMap& sources, Diagnostic error);

// The exit code that an error asks for if it is a SystemExit, after its message is written to standard error; nullopt
// for every other error.
std::optional<int> exit_status(Interpreter& interpreter, const Diagnostic& error);

}  // namespace tilepilot::stage
