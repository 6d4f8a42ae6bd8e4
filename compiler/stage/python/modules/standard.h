// The parts of Python's standard library that programs may import: pure computation, nothing that reaches the system.
#pragma once

#include <memory>
#include <string>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

// A fresh module of that dotted name, or null if it is not one of ours.
std::shared_ptr<ModuleObject> make_standard_module(Interpreter& interpreter, const std::string& name);
// True for modules that reach files, the network, processes, threads or clocks; for a candidate, those that look into
// the program that runs it too.
bool is_forbidden_module(std::string_view name, bool is_script);

void fill_math(Interpreter& interpreter, ModuleObject& module);
void fill_typing(Interpreter& interpreter, ModuleObject& module);
void fill_functools(Interpreter& interpreter, ModuleObject& module);
void fill_itertools(Interpreter& interpreter, ModuleObject& module);
void fill_collections(Interpreter& interpreter, ModuleObject& module);
void fill_collections_abc(Interpreter& interpreter, ModuleObject& module);
void fill_operator(Interpreter& interpreter, ModuleObject& module);
void fill_dataclasses(Interpreter& interpreter, ModuleObject& module);
void fill_contextlib(Interpreter& interpreter, ModuleObject& module);
void fill_copy(Interpreter& interpreter, ModuleObject& module);
void fill_warnings(Interpreter& interpreter, ModuleObject& module);
void fill_abc(Interpreter& interpreter, ModuleObject& module);
void fill_numbers(Interpreter& interpreter, ModuleObject& module);
void fill_enum(Interpreter& interpreter, ModuleObject& module);
void fill_re(Interpreter& interpreter, ModuleObject& module);

// A name like `typing.Optional`: can be subscripted, means nothing, and as a base class is left out.
Value make_typing_name(std::string shown);

}  // namespace tilepilot::stage
