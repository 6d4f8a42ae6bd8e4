// What bounds a script's measurements and tuning on this machine, and how the Python parts of `tilelang` know of it.
#pragma once

#include <memory>

#include "compiler/runtime/kernel.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

struct RunLimits {
  double bench_ms = 125;   // for the calls of one benchmark; a benchmark makes at least one
  int autotune_limit = 4;  // configurations that one tuning tries
};

// Counts kernels that were compiled, and adds up the time it takes, which no benchmark should count.
class CompileClock final : public runtime::KernelBackend {
 public:
  explicit CompileClock(std::unique_ptr<runtime::KernelBackend> backend) : backend_(std::move(backend)) {}
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override;
  double seconds() const { return seconds_; }
  int kernels() const { return kernels_; }

 private:
  std::unique_ptr<runtime::KernelBackend> backend_;
  double seconds_ = 0;
  int kernels_ = 0;
};

// The module `_tilepilot_limits`: the limits, `compile_seconds()`, and `announce(message, hint)`, a warning where the
// script is at. `clock` must outlive the interpreter.
void add_run_limits(stage::Interpreter& interpreter, const RunLimits& limits, const CompileClock& clock);

}  // namespace tilepilot::eval
