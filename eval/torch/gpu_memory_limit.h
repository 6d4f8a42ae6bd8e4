// A limit on what LibTorch takes of a GPU's memory in this process. LibTorch's own limit is not in the interface that
// it has with and without CUDA alike; but all that its allocator takes comes from `cudaMalloc` of CUDA's runtime, a
// library, and the function of that name in this program stands before it. Beyond the limit it answers what a GPU
// without free memory does: LibTorch gives back what it keeps, tries again, and throws `OutOfMemoryError`.
#pragma once

#include <cstdint>
#include <optional>

namespace tilepilot::eval {

// From now on, for all that the process has taken and takes; 0: none.
void limit_gpu_memory(int64_t bytes);

struct RefusedGpuMemory {
  int64_t asked, held, limit;  // bytes
};
// What was refused last, if nothing was taken since.
std::optional<RefusedGpuMemory> refused_gpu_memory();

}  // namespace tilepilot::eval

// As CUDA's runtime declares them; 0: success.
extern "C" int cudaMalloc(void** address, size_t bytes);
extern "C" int cudaFree(void* address);
