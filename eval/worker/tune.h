// `tilepilot tune`: finds the fastest configuration of a call. The search itself is Python
// (compiler/stage/tile/modules/tilelang_tune.py); here the call is taken apart.
#pragma once

#include <nlohmann/json.hpp>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

// A call of a function that the script defines, to be tuned instead of running the script as a program.
struct TuneRequest {
  std::string call;         // "matmul(1024, 1024, 1024)"
  int limit = 12;           // configurations that are tried
  double time_limit = 100;  // seconds that one of them may run
  bool json = false;        // the answer as one JSON object on standard output, everything else on standard error
  bool quiet = false;       // no line for each configuration on standard error
};

// What was measured and which configuration won, as `tune_call` of the search gives it. The call is an expression in
// the module. Errors: bad_usage if it is no call, names what the module does not have, or leaves nothing to tune; what
// the program or all configurations did wrong. Syntax errors go to `diagnostics`, too.
Result<nlohmann::json> tune_call(stage::Interpreter& interpreter, stage::ModuleObject& module,
                                 const TuneRequest& request, DiagnosticList& diagnostics);

}  // namespace tilepilot::eval
