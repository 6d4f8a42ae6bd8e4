// TMA descriptors: made by the driver, and kept for the tensors that they were made for.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/runtime/cuda/driver.h"
#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::runtime::cuda {

// What the driver is asked for, with the values of the plan's extents and strides.
Device::TensorShape described(const targets::cuda::TensorMap& plan, const void* data, std::vector<uint64_t> extents,
                              std::vector<uint64_t> strides);

// The descriptions that one parameter of a function had lately: programs that take turns with a few tensors need no
// new ones.
class TensorMaps {
 public:
  // What is returned holds until the next call. Errors: device_failed, out_of_memory.
  // @post a tensor without elements, which the driver describes none of, is described as a single 0 of its own
  // @pre `data` is aligned to 16 bytes, as TMA requires
  Result<Device::TensorMap*> of(const Device& device, const targets::cuda::TensorMap& plan, const void* data,
                                const ir::VarRanges& values);

 private:
  static constexpr size_t kKept = 8, kMostAxes = 5;
  struct Made {
    const void* data = nullptr;
    std::array<uint64_t, kMostAxes> extents = {}, strides = {};
    Device::TensorMap map;
  };
  std::vector<Made> made_;
  size_t oldest_ = 0;  // once there are so many as are kept
  struct Nothing {
    DeviceMemory zeros;
    Device::TensorMap map;
  };
  std::shared_ptr<Nothing> nothing_;  // of tensors without elements

  Result<Device::TensorMap*> of_nothing(const Device& device, const targets::cuda::TensorMap& plan);
};

}  // namespace tilepilot::runtime::cuda
