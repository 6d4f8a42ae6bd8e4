// Kernels of a GPU on tensors in the host's memory: each launch takes copies there and brings back what it wrote. For
// the calls that a program makes while its model is built, which happens on the processor.
#pragma once

#include <memory>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

// From a tensor's first element to its last; 0 if it has none.
int64_t bytes_spanned(const runtime::TensorView& view);

struct HostMemoryUse {
  bool used = false;  // tensors are in the host's memory now
};

// `use` must outlive the result and the kernels it makes.
std::unique_ptr<runtime::KernelBackend> stage_host_memory(std::unique_ptr<runtime::KernelBackend> backend,
                                                          std::shared_ptr<const runtime::cuda::Device> gpu,
                                                          const HostMemoryUse& use);

}  // namespace tilepilot::eval
