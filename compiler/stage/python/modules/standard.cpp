#include "compiler/stage/python/modules/standard.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "compiler/stage/python/objects/native.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::embedded {
extern const char tilepilot_collections[];
extern const char tilepilot_contextlib[];
extern const char tilepilot_bisect[];
extern const char tilepilot_functools[];
extern const char tilepilot_heapq[];
extern const char tilepilot_logging_quiet[];
extern const char tilepilot_re[];
extern const char tilepilot_string[];
extern const char tilepilot_textwrap[];
}  // namespace tilepilot::embedded

namespace tilepilot::stage {

namespace {

struct StandardModule {
  std::string_view name;
  void (*fill)(Interpreter&, ModuleObject&);
  const char* text = nullptr;    // what else of it is written in Python
  bool only_candidates = false;  // scripts have another
};

void fill_future(Interpreter&, ModuleObject& module) {
  for (std::string_view name : {"annotations", "division", "print_function", "absolute_import"}) {
    module.set(name, std::make_shared<ModuleObject>("__future__." + std::string(name)));
  }
}

void fill_nothing(Interpreter&, ModuleObject&) {}

constexpr StandardModule kModules[] = {
    {"__future__", fill_future},
    {"math", fill_math},
    {"typing", fill_typing},
    {"typing_extensions", fill_typing},
    {"functools", fill_functools, embedded::tilepilot_functools},
    {"itertools", fill_itertools},
    {"collections", fill_collections, embedded::tilepilot_collections},
    {"collections.abc", fill_collections_abc},
    {"operator", fill_operator},
    {"dataclasses", fill_dataclasses},
    {"contextlib", fill_contextlib, embedded::tilepilot_contextlib},
    {"copy", fill_copy},
    {"warnings", fill_warnings},
    {"abc", fill_abc},
    {"enum", fill_enum},
    {"numbers", fill_numbers},
    {"re", fill_re, embedded::tilepilot_re},
    {"bisect", fill_nothing, embedded::tilepilot_bisect},
    {"heapq", fill_nothing, embedded::tilepilot_heapq},
    {"string", fill_nothing, embedded::tilepilot_string},
    {"textwrap", fill_nothing, embedded::tilepilot_textwrap},
    {"logging", fill_nothing, embedded::tilepilot_logging_quiet, true},
};

constexpr std::string_view kOutsideModules[] = {
    "os",        "sys",        "subprocess", "socket",  "time",     "threading", "multiprocessing", "ctypes",
    "importlib", "shutil",     "pathlib",    "io",      "tempfile", "glob",      "signal",          "asyncio",
    "http",      "urllib",     "requests",   "ssl",     "select",   "resource",  "pickle",          "marshal",
    "mmap",      "concurrent", "sqlite3",    "runpy",   "pdb",      "getpass",   "posix",           "fcntl",
    "pty",       "site",       "zipfile",    "tarfile", "cffi",     "psutil",    "linecache"};

constexpr std::string_view kInsideModules[] = {"datetime",  "platform", "gc",   "inspect",  "builtins",
                                               "traceback", "atexit",   "code", "sysconfig"};

// The text is ours: it parses and runs.
void run_text(Interpreter& interpreter, const std::shared_ptr<ModuleObject>& module, const char* text) {
  DiagnosticList errors;
  const int32_t file = interpreter.sources().add(fmt::format("<{}>", module->name), text);
  const syntax::ModuleRef tree = syntax::parse(interpreter.sources(), file, errors);
  assert(tree);
  module->set("__name__", Value(module->name));
  Interpreter::StagingGuard outside_of_kernels(interpreter, nullptr);
  [[maybe_unused]] const Status ran = interpreter.run_module_in(tree, module);
  assert(ran.ok());
}

template <size_t count>
bool holds(const std::string_view (&table)[count], std::string_view name) {
  return std::find(std::begin(table), std::end(table), name) != std::end(table);
}

}  // namespace

std::shared_ptr<ModuleObject> make_standard_module(Interpreter& interpreter, const std::string& name) {
  for (const StandardModule& each : kModules) {
    if (each.name != name || (each.only_candidates && interpreter.importer())) continue;
    auto module = std::make_shared<ModuleObject>(name);
    each.fill(interpreter, *module);
    if (each.text) run_text(interpreter, module, each.text);
    return module;
  }
  return nullptr;
}

bool is_forbidden_module(std::string_view name, bool is_script) {
  return holds(kOutsideModules, name) || (!is_script && holds(kInsideModules, name));
}

}  // namespace tilepilot::stage
