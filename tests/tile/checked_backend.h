// The CPU backend, with the reference interpreter beside it: every launch runs on both, and both must agree.
#pragma once

#include "compiler/runtime/kernel.h"

namespace tilepilot::testing {

// `kernels` compiles; a launch whose results the interpreter does not share fails the running test.
class CheckedBackend final : public runtime::KernelBackend {
 public:
  explicit CheckedBackend(runtime::KernelBackend& kernels) : kernels_(kernels) {}
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override;

 private:
  runtime::KernelBackend& kernels_;
};

}  // namespace tilepilot::testing
