#include "compiler/stage/python/script.h"

#include "compiler/stage/python/exceptions.h"
#include "compiler/stage/python/modules/system.h"
#include "compiler/stage/python/script_importer.h"

namespace tilepilot::stage {

void install_script(Interpreter& interpreter, const Script& script) {
  add_system_modules(interpreter, script);
  interpreter.set_importer(std::make_unique<ScriptImporter>(script.path));
}

std::optional<int> exit_status(Interpreter& interpreter, const Diagnostic& error) {
  if (!error.thrown || !is_raised(interpreter, error, "SystemExit")) return std::nullopt;
  auto exception = std::static_pointer_cast<Object>(error.thrown);
  const Value* code = exception->as_instance()->attributes().find(Name("code"));
  if (!code || code->is_none()) return 0;
  if (auto number = code->as_index()) return static_cast<int>(*number & 0xff);
  auto text = interpreter.str(*code);
  if (text.ok()) interpreter.print_error(*text + "\n");
  return 1;
}

}  // namespace tilepilot::stage
