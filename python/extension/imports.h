// What `import` means inside a tile program: the modules of the language are ours, `torch` and every other module are
// Python's own. So are the built-ins that reach outside a program.
#pragma once

#include <nanobind/nanobind.h>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::package {

void install_imports(stage::Interpreter& interpreter);

// The module of ours that a module of Python stands for (`tilepilot.tilelang.language`), or null.
std::shared_ptr<stage::ModuleObject> module_of_ours(nanobind::handle module);

}  // namespace tilepilot::package
