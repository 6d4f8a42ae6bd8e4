// Where NVRTC may lie: CUDA toolkits, the folders of PyTorch and of the packages that it brings.
#pragma once

#include <filesystem>
#include <vector>

namespace tilepilot::runtime::cuda {

// Files that look like the library in places under `folders` where it is known to lie; those of a folder that was named
// first come first, newer versions before older ones.
std::vector<std::filesystem::path> find_nvrtc(const std::vector<std::filesystem::path>& folders);

}  // namespace tilepilot::runtime::cuda
