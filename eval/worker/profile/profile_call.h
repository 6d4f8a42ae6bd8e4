// `tilepilot profile`: watches calls of a kernel, or of any function, that a script defines.
#pragma once

#include <optional>

#include "compiler/stage/python/interpreter.h"
#include "eval/profile/profile.h"
#include "eval/worker/profile/observed_backend.h"

namespace tilepilot::eval {

struct ProfileRequest {
  // "matmul(1024, 1024, 1024)": if that is a kernel, or a tile program, it gets inputs as `get_profiler` makes them;
  // otherwise the call itself is what is watched.
  std::string call;
  double seconds = 0.5;    // for the calls; there are at least two, in the emulator one
  bool json = false;       // the answer as one JSON object on standard output, everything else on standard error
  bool with_text = false;  // the object holds, under `text`, what is printed otherwise
};

// `profiled` is that of the interpreter's backend; the machine and the target of the profile are left to the caller.
// Errors: bad_usage if the call is no expression, or names what the module does not have; what the program does wrong.
// Syntax errors go to `diagnostics`, too.
struct CalledProfile {
  CallsRecord record;
  std::optional<Timing> call;  // on a GPU, of calls that were not watched
};
Result<CalledProfile> profile_call(stage::Interpreter& interpreter, stage::ModuleObject& module,
                                   const ProfileRequest& request, const stage::StatementMarker& place,
                                   c10::Device device, Profiled& profiled, DiagnosticList& diagnostics);

}  // namespace tilepilot::eval
