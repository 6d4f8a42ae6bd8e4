#include "compiler/stage/python/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/modules/system.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/script_importer.h"

namespace tilepilot::stage {

namespace {

// Embedded modules have names like `<torch.testing>`.
bool in_a_script(const SourceMap& sources, Span span) { return span.valid() && sources.name(span.file).front() != '<'; }

}  // namespace

void install_script(Interpreter& interpreter, const Script& script) {
  add_system_modules(interpreter, script);
  interpreter.set_importer(std::make_unique<ScriptImporter>(script.path, script.modules));
}

Result<std::shared_ptr<ModuleObject>> find_part(Interpreter& interpreter, std::string_view parent, Name part,
                                                Span span) {
  Importer* importer = interpreter.importer();
  if (!importer) return std::shared_ptr<ModuleObject>();
  return importer->find(interpreter, fmt::format("{}.{}", parent, part.text()), span);
}

Span script_position(const Interpreter& interpreter, Span otherwise) {
  const auto& frames = interpreter.frames();
  auto caller = std::find_if(frames.rbegin(), frames.rend(), [&](const Interpreter::Frame& frame) {
    return in_a_script(interpreter.sources(), frame.call_span);
  });
  return caller == frames.rend() ? otherwise : caller->call_span;
}

Diagnostic seen_from_script(const SourceMap& sources, Diagnostic error) {
  const bool happened_inside = error.span.valid() && !in_a_script(sources, error.span);
  auto is_inside = [&](const Note& note) { return note.span.valid() && !in_a_script(sources, note.span); };
  error.notes.erase(std::remove_if(error.notes.begin(), error.notes.end(), is_inside), error.notes.end());
  auto caller =
      std::find_if(error.notes.begin(), error.notes.end(), [](const Note& note) { return note.span.valid(); });
  if (!happened_inside || caller == error.notes.end()) return error;
  error.span = caller->span;
  error.notes.erase(error.notes.begin(), caller + 1);
  return error;
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
