#include "compiler/stage/python/modules/standard.h"

#include <algorithm>

#include "compiler/stage/python/native.h"

namespace tilepilot::stage {

namespace {

struct StandardModule {
  std::string_view name;
  void (*fill)(Interpreter&, ModuleObject&);
};

void fill_future(Interpreter&, ModuleObject& module) {
  for (std::string_view name : {"annotations", "division", "print_function", "absolute_import"}) {
    module.set(name, std::make_shared<ModuleObject>("__future__." + std::string(name)));
  }
}

constexpr StandardModule kModules[] = {
    {"__future__", fill_future},
    {"math", fill_math},
    {"typing", fill_typing},
    {"typing_extensions", fill_typing},
    {"functools", fill_functools},
    {"itertools", fill_itertools},
    {"collections", fill_collections},
    {"collections.abc", fill_collections_abc},
    {"operator", fill_operator},
    {"dataclasses", fill_dataclasses},
    {"contextlib", fill_contextlib},
    {"copy", fill_copy},
    {"warnings", fill_warnings},
    {"abc", fill_abc},
    {"enum", fill_enum},
    {"numbers", fill_numbers},
};

constexpr std::string_view kOutsideModules[] = {
    "os",        "sys",        "subprocess", "socket",  "time",     "threading", "multiprocessing", "ctypes",
    "importlib", "shutil",     "pathlib",    "io",      "tempfile", "glob",      "signal",          "asyncio",
    "http",      "urllib",     "requests",   "ssl",     "select",   "resource",  "pickle",          "marshal",
    "mmap",      "concurrent", "sqlite3",    "runpy",   "pdb",      "getpass",   "posix",           "fcntl",
    "pty",       "site",       "zipfile",    "tarfile", "cffi",     "psutil",    "linecache"};

constexpr std::string_view kInsideModules[] = {"datetime",  "platform", "gc",   "inspect",  "builtins",
                                               "traceback", "atexit",   "code", "sysconfig"};

template <size_t count>
bool holds(const std::string_view (&table)[count], std::string_view name) {
  return std::find(std::begin(table), std::end(table), name) != std::end(table);
}

}  // namespace

std::shared_ptr<ModuleObject> make_standard_module(Interpreter& interpreter, const std::string& name) {
  for (const StandardModule& each : kModules) {
    if (each.name != name) continue;
    auto module = std::make_shared<ModuleObject>(name);
    each.fill(interpreter, *module);
    return module;
  }
  return nullptr;
}

bool is_forbidden_module(std::string_view name, bool is_script) {
  return holds(kOutsideModules, name) || (!is_script && holds(kInsideModules, name));
}

}  // namespace tilepilot::stage
