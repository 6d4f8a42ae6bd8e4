#include "compiler/targets/gpu/layout/reduction_modes.h"

#include <algorithm>
#include <bit>

namespace tilepilot::targets::gpu {

ir::DType accumulator_type(ir::DType type) { return type.is_small_float() ? ir::kFloat32 : type; }

std::vector<ThreadMode> modes_along(const layout::Fragment& fragment, size_t axis) {
  const int64_t step = layout::row_major_strides(fragment.cover())[axis];
  std::vector<ThreadMode> along;
  int64_t weight = 1;
  for (const layout::Mode& mode : fragment.threads().modes()) {
    if (mode.extent > 1 && mode.stride >= step && mode.stride < step * fragment.cover()[axis])
      along.push_back({weight, mode.extent});
    weight *= mode.extent;
  }
  return along;
}

SplitModes split_modes(const std::vector<ThreadMode>& along, int64_t threads) {
  const auto is_power = [](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); };
  SplitModes split;
  for (const ThreadMode& mode : along) {
    const int64_t lanes = layout::kWarpSize / mode.weight;
    if (threads % layout::kWarpSize != 0 || mode.weight >= layout::kWarpSize || !is_power(mode.weight)) {
      split.warps.push_back(mode);
    } else if (mode.extent <= lanes && is_power(mode.extent)) {
      split.lanes.push_back(mode);
    } else if (mode.extent % lanes == 0) {
      split.lanes.push_back({mode.weight, lanes});
      split.warps.push_back({layout::kWarpSize, mode.extent / lanes});
    } else {
      split.warps.push_back(mode);
    }
  }
  return split;
}

bool may_be_compact(const SplitModes& modes) {
  return !modes.lanes.empty() && std::all_of(modes.warps.begin(), modes.warps.end(), [](const ThreadMode& mode) {
    return mode.weight % layout::kWarpSize == 0;
  });
}
int64_t scratch_size(const SplitModes& modes, int64_t threads, bool compact) {
  if (compact && may_be_compact(modes))
    for (const ThreadMode& mode : modes.lanes) threads /= mode.extent;
  return threads;
}

}  // namespace tilepilot::targets::gpu
