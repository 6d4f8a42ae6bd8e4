// The CUDA backend: passes and code generation for a GPU, NVRTC, the driver. Tensors are of the device's memory.
#pragma once

#include <functional>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/runtime/kernel.h"

namespace tilepilot::runtime::cuda {

struct CudaOptions {
  NvrtcOptions nvrtc;
  DeviceOptions device;
  std::string architecture;            // "sm_80" or "sm_90a"; empty: what the device is best at
  std::function<Stream()> stream;      // where launches go; none: the default stream
  bool waits = false;                  // a launch returns when it is done, with what it did wrong
  const SourceMap* sources = nullptr;  // that programs' spans point into, for profilers; outlives the backend
};

// Opens the device at the first compilation. Errors of `compile`: those of NVRTC, the driver and the target.
std::unique_ptr<KernelBackend> cuda_backend(CudaOptions options);

// The code for usual tensors, compiled and thrown away but for its text: no device is needed. `architecture` is
// "sm_80" or "sm_90a".
Result<std::string> compile_without_device(const ir::Program& program, const std::string& architecture,
                                           const NvrtcOptions& nvrtc, DiagnosticList& warnings);

}  // namespace tilepilot::runtime::cuda
