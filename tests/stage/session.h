// One program run in a fresh interpreter: what it printed, and its error if it failed.
#pragma once

#include <string>

#include "compiler/diagnostics/render.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::stage {

class Session {
 public:
  explicit Session(Limits limits = {}) : interpreter(sources, limits) {
    interpreter.set_print([this](const std::string& text) { printed += text; });
    interpreter.set_print_error([this](const std::string& text) { complaints += text; });
  }

  // Runs a module; false if it failed.
  bool run(std::string text, std::string name = "program.py") {
    DiagnosticList diagnostics;
    int32_t file = sources.add(std::move(name), std::move(text));
    syntax::ModuleRef tree = syntax::parse(sources, file, diagnostics);
    if (!tree) {
      error = make_error(diagnostics.items().front());
      return false;
    }
    auto result = interpreter.run_module(tree, "__main__");
    if (!result.ok()) {
      error = std::move(result).take_error();
      return false;
    }
    module = *std::move(result);
    return true;
  }

  // What the program prints; the rendered error after it, if it failed.
  std::string output(std::string text) {
    bool good = run(std::move(text));
    return good ? printed : printed + render(sources, *error);
  }

  SourceMap sources;
  Interpreter interpreter;
  std::string printed;
  std::string complaints;  // what went to sys.stderr
  Error error;
  std::shared_ptr<ModuleObject> module;
};

// What `program` prints, or the kind and message of its error.
inline std::string outcome(const std::string& program) {
  Session session;
  if (session.run(program)) return session.printed;
  return session.printed + std::string(info(session.error->kind).name) + ": " + session.error->message + "\n";
}

}  // namespace tilepilot::stage
