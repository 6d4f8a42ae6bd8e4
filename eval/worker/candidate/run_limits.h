// What bounds a script's measurements and tuning on this machine, what is kept of them, and how the Python parts of
// `tilelang` know of it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/runtime/kernel.h"
#include "compiler/runtime/tuning_cache.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

struct RunLimits {
  double bench_ms = 125;   // for the calls of one benchmark; a benchmark makes at least one
  int autotune_limit = 0;  // configurations that one tuning tries; 0: as many as suit the target
  // The command that begins this run anew where a kernel hung or broke the GPU; empty: nothing does, and there is no
  // limit on the time of a trial.
  std::vector<std::string> begin_anew = {};
};

// Where kernels run, for tuning.
struct TuningPlace {
  std::string device;        // as people call it
  std::string identity;      // of all that measurements hold for
  std::string architecture;  // "sm_80" or "sm_90a"; empty: no GPU's code
  int tries = 4;             // configurations of one tuning, unless the limits say it
  runtime::TuningCache cache;
};

// Counts kernels that were compiled, and adds up the time it takes, which no benchmark should count: that in which any
// thread compiles.
class CompileClock final : public runtime::KernelBackend {
 public:
  explicit CompileClock(std::unique_ptr<runtime::KernelBackend> backend) : backend_(std::move(backend)) {}
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override;
  double seconds() const;
  int kernels() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::unique_ptr<runtime::KernelBackend> backend_;
  mutable std::mutex mutex_;  // guards what follows
  int compiling_ = 0;         // threads
  Clock::time_point since_;   // when the first of them began
  double seconds_ = 0;
  int kernels_ = 0;
};

// The module `_tilepilot_limits`: the limits and the place, `compile_seconds()`, `announce(message, hint)`, a warning
// where the script is at, `find_tuning(key)` and `keep_tuning(key, record)`. `begin_trial(seconds, key, record,
// message)` and `end_trial()` stand around what may hang: if it does, the record is kept, the message told, and the run
// begins anew; `begin_anew(key, record, message)` does so at once, or returns where nothing does. `clock` must outlive
// the interpreter.
void add_run_limits(stage::Interpreter& interpreter, const RunLimits& limits, TuningPlace place,
                    const CompileClock& clock);

}  // namespace tilepilot::eval
