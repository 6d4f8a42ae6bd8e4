// Machine code of a GPU as text (SASS), by the tools that come with CUDA: nvdisasm, else cuobjdump.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

// `folders`: as of NvrtcOptions; then wherever programs are found. Errors: not_installed, load_failed.
Result<std::string> disassembled(const std::string& cubin, const std::vector<std::filesystem::path>& folders);

}  // namespace tilepilot::runtime::cuda
