#include "compiler/targets/gpu/layout/reduction_modes.h"

#include <cmath>

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

ir::Expr identity_of(ir::ReduceOp op, ir::DType type) {
  const bool lowest = op == ir::ReduceOp::max, highest = op == ir::ReduceOp::min;
  if (type.is_float()) return ir::float_imm(lowest ? -INFINITY : highest ? INFINITY : 0, type);
  if (op == ir::ReduceOp::bit_and) return type.is_bool() ? ir::bool_imm(true) : ir::int_imm(-1, type);
  if (!lowest && !highest) return type.is_bool() ? ir::bool_imm(false) : ir::int_imm(0, type);
  if (type.is_bool()) return ir::bool_imm(highest);
  const bool is_unsigned = type.code == ir::TypeCode::unsigned_int;
  const auto most = static_cast<int64_t>(~UINT64_C(0) >> (64 - type.bits + (is_unsigned ? 0 : 1)));
  return ir::int_imm(highest ? most : is_unsigned ? 0 : -most - 1, type);
}

}  // namespace tilepilot::targets::gpu
