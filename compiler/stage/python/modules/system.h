// What a script, unlike a candidate, may know of the system it runs on: its arguments, the clock, and names of files.
// Whatever opens, lists or changes something is refused by name.
#pragma once

#include "compiler/stage/python/script.h"

namespace tilepilot::stage {

// Adds `sys`, `os`, `os.path` and `time`, and the built-ins `exit` and `quit`.
void add_system_modules(Interpreter& interpreter, const Script& script);

// A module that reaches the system: it may be imported, what is in it may not be used. Of `os` a program has an empty
// environment.
std::shared_ptr<ModuleObject> make_outside_module(Interpreter& interpreter, const std::string& name, bool is_script);

void fill_sys(Interpreter& interpreter, ModuleObject& module, const Script& script);
void fill_os(Interpreter& interpreter, ModuleObject& module);
void fill_os_path(Interpreter& interpreter, ModuleObject& module);
void fill_time(Interpreter& interpreter, ModuleObject& module);

}  // namespace tilepilot::stage
