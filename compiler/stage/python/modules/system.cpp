#include "compiler/stage/python/modules/system.h"

#include <fmt/format.h>

#include <chrono>

namespace tilepilot::stage {

namespace {

constexpr char kMayScript[] = "a script may compute, print, read the clock and import the files beside it";
constexpr char kMayCandidate[] = "compute from the arguments alone";

// Names that the module has in Python and not here.
void refuse_the_rest(ModuleObject& module, const char* hint) {
  module.missing = [name = module.name, hint](Interpreter&, Name attribute, Span span) -> Result<std::optional<Value>> {
    if (attribute.text().substr(0, 2) == "__") return std::optional<Value>();
    return make_error(
        DiagnosticKind::forbidden, span,
        fmt::format("`{}.{}` is not allowed: it reaches the system outside the program", name, attribute.text()), hint);
  };
}

template <class Clock>
Result<Value> seconds(Interpreter&, CallArgs&) {
  return Value(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
}

template <class Clock>
Result<Value> nanoseconds(Interpreter&, CallArgs&) {
  using Nanoseconds = std::chrono::duration<int64_t, std::nano>;
  return Value(std::chrono::duration_cast<Nanoseconds>(Clock::now().time_since_epoch()).count());
}

}  // namespace

void fill_time(Interpreter&, ModuleObject& module) {
  using std::chrono::steady_clock, std::chrono::system_clock;
  module.function("time", seconds<system_clock>);
  module.function("time_ns", nanoseconds<system_clock>);
  for (const char* name : {"perf_counter", "monotonic"}) {
    module.function(name, seconds<steady_clock>);
    module.function(fmt::format("{}_ns", name), nanoseconds<steady_clock>);
  }
}

std::shared_ptr<ModuleObject> make_outside_module(Interpreter& interpreter, const std::string& name, bool is_script) {
  auto module = std::make_shared<ModuleObject>(name);
  if (name == "os") fill_os(interpreter, *module);
  refuse_the_rest(*module, is_script ? kMayScript : kMayCandidate);
  return module;
}

void add_system_modules(Interpreter& interpreter, const Script& script) {
  auto sys = std::make_shared<ModuleObject>("sys");
  auto os = std::make_shared<ModuleObject>("os");
  auto path = std::make_shared<ModuleObject>("os.path");
  auto time = std::make_shared<ModuleObject>("time");
  fill_sys(interpreter, *sys, script);
  fill_os(interpreter, *os);
  fill_os_path(interpreter, *path);
  fill_time(interpreter, *time);
  os->set("path", path);
  for (const char* name : {"exit", "quit"}) interpreter.set_builtin(name, *sys->members.find(Name("exit")));
  for (const auto& module : {sys, os, path, time}) {
    refuse_the_rest(*module, kMayScript);
    interpreter.add_module(module->name, module);
  }
}

}  // namespace tilepilot::stage
