// What a GPU's shared memory holds before a kernel writes there: the hardware leaves it to the next kernel as it was,
// mostly zeros in a process of its own, on which programs must not rely. Before each batch it is filled with random
// finite numbers.
#pragma once

#include <memory>

#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::eval {

class FreshSharedMemory {
 public:
  // Errors: the driver compiles no PTX here.
  static Result<FreshSharedMemory> make(const std::shared_ptr<const runtime::cuda::Device>& device);
  // On every multiprocessor, in this stream.
  Status renew(uint64_t seed, runtime::cuda::Stream stream) const;

 private:
  std::shared_ptr<const runtime::cuda::Device> device_;
  std::shared_ptr<runtime::cuda::Module> module_;
  runtime::cuda::Function fill_;
};

}  // namespace tilepilot::eval
