// The GPUs that this process may use.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tilepilot::runtime::cuda {

struct VisibleGpu {
  std::string id;    // as CUDA_VISIBLE_DEVICES takes it, whatever is visible here: "GPU-00010203-..."
  std::string name;  // "NVIDIA H200"
};

// In the driver's order; none without a driver. Nothing is taken of them, not even a context. `library`: the driver;
// empty: wherever the system has it.
std::vector<VisibleGpu> visible_gpus(const std::filesystem::path& library = {});

}  // namespace tilepilot::runtime::cuda
