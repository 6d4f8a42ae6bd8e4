// Tensors on their way to another process: memory that both map, and a JSON description of what lies where. What is in
// the host's memory travels in a sealed memory file. What is on a GPU stays there, in memory that the driver lets two
// processes map (compiler/runtime/cuda/shared_memory.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "compiler/runtime/cuda/shared_memory.h"
#include "eval/process/wire.h"

namespace tilepilot::eval {

enum class Direction {
  to_candidate,   // with the strides they have and what lies between their elements
  from_candidate  // their elements alone, and nothing that the sender could still change
};

struct TensorTransfer {
  Direction direction = Direction::to_candidate;
  std::shared_ptr<const runtime::cuda::Device> gpu = nullptr;  // null: all goes by the host's memory
  c10::Device device = c10::DeviceType::CPU;                   // of the tensors in the GPU's memory
  // Of a candidate's tensors together, each element counted: what is more is described, and stays where it is. A view
  // of one element can have more elements than any memory.
  int64_t most_bytes = INT64_MAX;
};

struct PackedTensors {
  nlohmann::json description;
  Descriptor file;
  std::shared_ptr<const runtime::cuda::SharedMemory> on_gpu;  // null: nothing lies there

  // To be sent beside the description, in this order.
  std::vector<int> descriptors() const;
};

// Copies the elements into fresh memory, unless they are a candidate's and more than it may send. Errors:
// `out_of_memory`, and those of SharedMemory.
Result<PackedTensors> pack_tensors(const std::vector<at::Tensor>& tensors, const TensorTransfer& transfer);

// The tensors, over private mappings of files, over the GPU's shared memory (to a candidate) or over copies of that
// (from one). Errors: `out_of_memory` if a candidate's are more than it may send, by the description, or a file cannot
// be mapped; `worker_unavailable` if the description does not fit what came, or that could still change; those of
// SharedMemory.
Result<std::vector<at::Tensor>> unpack_tensors(const nlohmann::json& description, const std::vector<Descriptor>& files,
                                               const TensorTransfer& transfer);

}  // namespace tilepilot::eval
