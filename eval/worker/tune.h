// `tilepilot tune`: finds the fastest configuration of a call. The search itself is Python
// (compiler/stage/tile/modules/tilelang_tune.py); here the call is taken apart.
#pragma once

#include <nlohmann/json.hpp>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

// What was measured and which configuration won, as `tune_call` of the search gives it. `call` is an expression in the
// module. Errors: bad_usage if it is no call, names what the module does not have, or leaves nothing to tune; what the
// program or all configurations did wrong. Syntax errors go to `diagnostics`, too.
Result<nlohmann::json> tune_call(stage::Interpreter& interpreter, stage::ModuleObject& module, const std::string& call,
                                 int limit, DiagnosticList& diagnostics);

}  // namespace tilepilot::eval
