// The targets `emulate:sm_80` and `emulate:sm_90a`: programs become CUDA text as for a GPU, and run in the emulator. A
// launch in which it finds a defect is an error.
#pragma once

#include <memory>

#include "compiler/emulator/emulator.h"
#include "compiler/ir/bounds.h"
#include "compiler/runtime/kernel.h"
#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::emulator {

struct BackendOptions {
  runtime::ToolchainOptions toolchain;
  Options checks;
  const SourceMap* sources =
      nullptr;  // that programs' spans point into, for the lines of defects; outlives the backend
  std::shared_ptr<CostBook> costs = nullptr;  // gets what each launch costs, arithmetic included; null: nobody counts
};

// A launch for values of the program's symbols. Of persistent ones fewer blocks than it allows: some take a second
// turn, and some do not. `sources`: for the lines of its operation counters.
EmulatedLaunch emulated(const targets::cuda::Launch& launch, const ir::VarRanges& values,
                        const SourceMap* sources = nullptr);
// A launch's tensor map for values of the program's symbols.
TensorMap encoded(const targets::cuda::TensorMap& map, const ir::VarRanges& values);

std::unique_ptr<runtime::KernelBackend> emulator_backend(targets::gpu::Architecture architecture,
                                                         BackendOptions options);

}  // namespace tilepilot::emulator
