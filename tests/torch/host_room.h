// A host room for tests: parses Python text, runs it with `torch` installed, calls its functions.
#pragma once

#include <string>

#include "compiler/stage/python/interpreter.h"
#include "compiler/syntax/parser.h"
#include "eval/host/tensors/tensor_object.h"
#include "eval/host/torch_host.h"

namespace tilepilot::eval::testing {

class Room {
 public:
  Room() : interpreter_(sources_, stage::Limits{}) { host_.install(interpreter_); }

  // Runs `text` as a module; the error is the first of reading or running it.
  Result<std::shared_ptr<stage::ModuleObject>> run(const std::string& text) {
    DiagnosticList diagnostics;
    syntax::ModuleRef tree = syntax::parse(sources_, sources_.add("program.py", text), diagnostics);
    if (!tree) return make_error(diagnostics.items().front());
    return interpreter_.run_module(tree, "program");
  }

  Result<stage::Value> call(stage::ModuleObject& module, const std::string& function,
                            std::vector<stage::Value> arguments = {}) {
    stage::Value callee = TRY(module.get_attribute(interpreter_, stage::Name(function), {}));
    stage::CallArgs args;
    args.positional = std::move(arguments);
    return interpreter_.call(callee, std::move(args));
  }

  // What the function `f` of the program `text` returns.
  Result<stage::Value> result(const std::string& text) {
    auto module = TRY(run(text));
    return call(*module, "f");
  }

  stage::Interpreter& interpreter() { return interpreter_; }
  TorchHost& host() { return host_; }
  SourceMap& sources() { return sources_; }

 private:
  SourceMap sources_;
  TorchHost host_;
  stage::Interpreter interpreter_;
};

}  // namespace tilepilot::eval::testing
