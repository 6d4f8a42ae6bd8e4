// `tilepilot run`: a TileLang script in the evaluator, with torch through LibTorch and kernels on the target. And
// `tilepilot tune`, which calls a function of a script to find its fastest configuration, and `tilepilot
// profile`, which watches one.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "compiler/runtime/target.h"
#include "compiler/stage/python/script.h"
#include "eval/worker/candidate/run_limits.h"
#include "eval/worker/profile/profile_call.h"
#include "eval/worker/tune.h"

namespace tilepilot::eval {

// Where a script's output goes; default: this process's own streams.
struct ScriptStreams {
  std::function<void(const std::string&)> output;
  std::function<void(const std::string&)> error;  // its own messages and our diagnostics
};

struct ScriptOptions {
  RunLimits limits;
  ScriptStreams streams;
  // Where to write how far the script came, as JSON: {"parsed", "staged", "compiled", "launched", "exit_code",
  // "seconds", "diagnostics", "costs"}, the three in the middle as numbers of programs, kernels and launches, the last
  // for each program what it cost in the emulator. Empty: nowhere.
  std::string report;
  runtime::Target target;
  std::optional<TuneRequest> tune;
  std::filesystem::path tuning_folder;  // where measurements of tuning are kept; empty: nowhere
  bool tells_costs = false;             // at the end, of launches in the emulator
  std::optional<ProfileRequest> profile = {};
};

// Runs the file as `__main__`, or tunes or profiles a call of what it defines. Gives the exit code: what the script
// asked for with SystemExit, else 0, 1 if it failed, 2 if it cannot be read or the call is none to tune, 3 if this
// machine lacks what the target needs.
int run_script(stage::Script script, ScriptOptions options = {});

// The version of LibTorch that this program was built with, and whether with CUDA.
std::string libtorch_version();

}  // namespace tilepilot::eval
