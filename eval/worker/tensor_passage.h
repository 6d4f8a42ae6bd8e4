// Tensors on their way to another process: a sealed memory file and a JSON description of what lies where. They may
// come from a GPU; they arrive in the host's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "eval/wire.h"

namespace tilepilot::eval {

struct PackedTensors {
  nlohmann::json description;
  Descriptor file;
};

// Copies the elements into a fresh memory file that nobody can change afterwards.
Result<PackedTensors> pack_tensors(const std::vector<at::Tensor>& tensors);

// The tensors, over a private mapping of the file, with the strides they had. Errors: `out_of_memory` if the file
// cannot be mapped; `worker_unavailable` if the description does not fit it, or it could still change.
Result<std::vector<at::Tensor>> unpack_tensors(const nlohmann::json& description, const Descriptor& file);

}  // namespace tilepilot::eval
