#include "compiler/runtime/cuda/tensor_maps.h"

#include <algorithm>

#include "compiler/runtime/arguments.h"

namespace tilepilot::runtime::cuda {
namespace {

// The driver's numbers (CUtensorMapDataType) of words of so many bytes, and of swizzles (CUtensorMapSwizzle).
int word_number(int64_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 4; }
int swizzle_number(int64_t span) { return span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0; }

}  // namespace

Device::TensorShape described(const targets::cuda::TensorMap& plan, const void* data, std::vector<uint64_t> extents,
                              std::vector<uint64_t> strides) {
  Device::TensorShape shape{reinterpret_cast<DeviceAddress>(data),
                            word_number(plan.type.bytes()),
                            swizzle_number(plan.swizzle),
                            std::move(extents),
                            std::move(strides),
                            {}};
  for (const int64_t extent : plan.box) shape.box.push_back(static_cast<uint32_t>(extent));
  return shape;
}

Result<Device::TensorMap*> TensorMaps::of(const Device& device, const targets::cuda::TensorMap& plan, const void* data,
                                          const ir::VarRanges& values) {
  Made wanted{data, {}, {}, {}};
  const size_t axes = plan.extents.size();
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t extent = evaluate(plan.extents[axis], values);
    if (extent <= 0) return of_nothing(device, plan);
    wanted.extents[axis] = static_cast<uint64_t>(extent);
  }
  for (size_t axis = 0; axis + 1 < axes; ++axis)
    wanted.strides[axis] = static_cast<uint64_t>(evaluate(plan.strides[axis], values));
  for (Made& made : made_)
    if (made.data == data && made.extents == wanted.extents && made.strides == wanted.strides) return &made.map;
  wanted.map = TRY(device.tensor_map(described(plan, data, {wanted.extents.begin(), wanted.extents.begin() + axes},
                                               {wanted.strides.begin(), wanted.strides.begin() + axes - 1})));
  if (made_.size() < kKept) return &made_.emplace_back(wanted).map;
  Made& replaced = made_[oldest_];
  oldest_ = (oldest_ + 1) % kKept;
  replaced = wanted;
  return &replaced.map;
}

Result<Device::TensorMap*> TensorMaps::of_nothing(const Device& device, const targets::cuda::TensorMap& plan) {
  constexpr int64_t kBytes = ir::kTensorAlignment;
  if (nothing_) return &nothing_->map;
  auto nothing = std::make_shared<Nothing>();
  nothing->zeros = TRY(device.allocate(kBytes));
  const std::array<char, kBytes> zeros = {};
  TRY(device.write(nothing->zeros.address(), zeros.data(), kBytes));
  const size_t axes = plan.extents.size();
  nothing->map =
      TRY(device.tensor_map(described(plan, reinterpret_cast<void*>(nothing->zeros.address()),
                                      std::vector<uint64_t>(axes, 1), std::vector<uint64_t>(axes - 1, kBytes))));
  nothing_ = std::move(nothing);
  return &nothing_->map;
}

}  // namespace tilepilot::runtime::cuda
