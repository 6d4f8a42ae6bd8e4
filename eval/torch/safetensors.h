// Reads a safetensors file: eight bytes of header length, a JSON header, the elements. The file is mapped, not read:
// pages come in as they are used, and writes to the tensors stay private to the process.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "compiler/diagnostics/result.h"

namespace tilepilot::eval {

using TensorMap = std::map<std::string, at::Tensor>;

// Errors: `file_not_found`, `reference_invalid`.
Result<TensorMap> load_safetensors(const std::filesystem::path& path);

}  // namespace tilepilot::eval
