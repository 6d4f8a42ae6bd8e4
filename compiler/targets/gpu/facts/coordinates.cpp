#include "compiler/targets/gpu/facts/coordinates.h"

#include <bit>
#include <numeric>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/visit.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using layout::Layout;
using layout::Mode;
using layout::Shape;

namespace {

Expr number(int64_t value) { return ir::int_imm(value); }
Expr op(BinaryOp op, const Expr& a, int64_t b) { return ir::binary(op, a, ir::int_imm(b, a->type), a->span); }

std::optional<size_t> axis_of(const Mode& mode, const Shape& cover, const std::vector<int64_t>& strides) {
  for (size_t axis = 0; axis < cover.size(); ++axis) {
    if (mode.stride < strides[axis]) continue;
    const bool stays =
        mode.stride % strides[axis] == 0 && mode.stride / strides[axis] * (mode.extent - 1) < cover[axis];
    if (stays) return axis;
    if (mode.stride < strides[axis] * cover[axis]) return std::nullopt;
  }
  return std::nullopt;
}

// The largest value along each axis, if every mode stays within one.
std::optional<std::vector<int64_t>> reach(const Layout& layout, const Shape& cover) {
  const std::vector<int64_t> strides = layout::row_major_strides(cover);
  std::vector<int64_t> most(cover.size(), 0);
  for (const Mode& mode : layout.modes()) {
    if (mode.extent == 1 || mode.stride == 0) continue;
    const auto axis = axis_of(mode, cover, strides);
    if (!axis) return std::nullopt;
    most[*axis] += mode.stride / strides[*axis] * (mode.extent - 1);
  }
  for (size_t axis = 0; axis < cover.size(); ++axis)
    if (most[axis] >= cover[axis]) return std::nullopt;
  return most;
}

// Digit k of `index` in the mixed radix of the layout's extents.
Expr digit(const Layout& layout, size_t k, const Expr& index) {
  int64_t weight = 1;
  for (size_t i = 0; i < k; ++i) weight *= layout.modes()[i].extent;
  const int64_t extent = layout.modes()[k].extent;
  const Expr shifted = quotient(index, weight);
  return weight * extent == layout.size() ? shifted : remainder(shifted, extent);
}

// a = whole * divisor + rest, by the terms of the sum that `a` is.
struct Divided {
  Expr whole = number(0), rest = number(0);
};
void divide(const Expr& a, int64_t divisor, Divided& parts) {
  const auto* node = ir::as<ir::Binary>(a);
  if (node != nullptr && node->op == BinaryOp::add) {
    divide(node->left, divisor, parts);
    return divide(node->right, divisor, parts);
  }
  const auto value = ir::constant_int(a);
  const auto factor = node != nullptr && node->op == BinaryOp::mul ? ir::constant_int(node->right) : std::nullopt;
  if (value && *value % divisor == 0)
    parts.whole = plus(parts.whole, number(*value / divisor));
  else if (factor && *factor % divisor == 0)
    parts.whole = plus(parts.whole, times(node->left, *factor / divisor));
  else
    parts.rest = plus(parts.rest, a);
}
Divided divide(const Expr& a, int64_t divisor) {
  Divided parts;
  divide(a, divisor, parts);
  return parts;
}

}  // namespace

std::optional<size_t> axis_of(const Mode& mode, const Shape& cover) {
  return axis_of(mode, cover, layout::row_major_strides(cover));
}

Layout split_by_axes(const Layout& layout, const Shape& cover) {
  const std::vector<int64_t> strides = layout::row_major_strides(cover);
  std::vector<Mode> modes;
  for (Mode mode : layout.modes()) {
    while (mode.stride != 0 && !axis_of(mode, cover, strides)) {
      // The axis that the mode starts in, and how far it gets there.
      size_t axis = 0;
      while (axis + 1 < cover.size() && mode.stride < strides[axis]) ++axis;
      const int64_t end = strides[axis] * cover[axis];
      const int64_t steps = end / mode.stride;
      if (mode.stride % strides[axis] != 0 || end % mode.stride != 0 || steps <= 1 || mode.extent % steps != 0) break;
      modes.push_back({steps, mode.stride});
      mode = {mode.extent / steps, end};
    }
    modes.push_back(mode);
  }
  return Layout(std::move(modes));
}

layout::Fragment split_by_axes(const layout::Fragment& fragment) {
  return layout::Fragment(fragment.shape(), split_by_axes(fragment.threads(), fragment.cover()),
                          split_by_axes(fragment.registers(), fragment.cover()), fragment.cover());
}

Expr plus(const Expr& a, const Expr& b) {
  const auto left = ir::constant_int(a), right = ir::constant_int(b);
  if (left && right) return number(*left + *right);
  if (left == 0) return b;
  if (right == 0) return a;
  return ir::binary(BinaryOp::add, a, b, a->span);
}

Expr times(const Expr& a, int64_t factor) {
  if (const auto value = ir::constant_int(a)) return number(*value * factor);
  if (factor == 0) return number(0);
  const auto* node = ir::as<ir::Binary>(a);
  if (node != nullptr && node->op == BinaryOp::mul)
    if (const auto inner = ir::constant_int(node->right)) return times(node->left, *inner * factor);
  if (node != nullptr && node->op == BinaryOp::add) return plus(times(node->left, factor), times(node->right, factor));
  return factor == 1 ? a : op(BinaryOp::mul, a, factor);
}

Expr quotient(const Expr& a, int64_t divisor) {
  if (divisor == 1) return a;
  if (const auto value = ir::constant_int(a)) return number(static_cast<int64_t>(ir::floor_div(*value, divisor)));
  const Divided parts = divide(a, divisor);
  const Expr rest =
      ir::constant_int(parts.rest) ? quotient(parts.rest, divisor) : op(BinaryOp::floor_div, parts.rest, divisor);
  return plus(parts.whole, rest);
}

Expr remainder(const Expr& a, int64_t divisor) {
  if (divisor == 1) return number(0);
  if (const auto value = ir::constant_int(a)) return number(static_cast<int64_t>(ir::floor_mod(*value, divisor)));
  const Expr rest = divide(a, divisor).rest;
  return ir::constant_int(rest) ? remainder(rest, divisor) : op(BinaryOp::floor_mod, rest, divisor);
}

int64_t known_factor(const Expr& expr) {
  if (const auto value = ir::constant_int(expr)) return std::gcd(*value, kLargestFactor);
  if (const auto* cast = ir::as<ir::Cast>(expr)) return cast->value->type.is_int() ? known_factor(cast->value) : 1;
  const auto* node = ir::as<ir::Binary>(expr);
  if (node == nullptr) return 1;
  const int64_t left = known_factor(node->left), right = known_factor(node->right);
  switch (node->op) {
    case BinaryOp::mul:
      return std::min(left * right, kLargestFactor);
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::floor_mod:
      return std::min(left, right);
    default:
      return 1;
  }
}

Indices digits_of(const Layout& layout, const Expr& index) {
  Indices digits;
  for (size_t k = 0; k < layout.modes().size(); ++k)
    digits.push_back(layout.modes()[k].extent == 1 ? number(0) : digit(layout, k, index));
  return digits;
}

bool is_separable(const layout::Fragment& fragment) {
  const auto threads = reach(fragment.threads(), fragment.cover());
  const auto registers = reach(fragment.registers(), fragment.cover());
  if (!threads || !registers) return false;
  for (size_t axis = 0; axis < fragment.cover().size(); ++axis)
    if ((*threads)[axis] + (*registers)[axis] >= fragment.cover()[axis]) return false;
  return true;
}

Indices coordinates_of(const layout::Fragment& fragment, const Indices& thread, const Indices& reg) {
  const Shape& cover = fragment.cover();
  const std::vector<int64_t> strides = layout::row_major_strides(cover);
  const bool separable = is_separable(fragment);
  Indices result(cover.size(), number(0));
  Expr linear = number(0);
  const auto add = [&](const Layout& layout, const Indices& digits) {
    for (size_t k = 0; k < layout.modes().size(); ++k) {
      const Mode& mode = layout.modes()[k];
      if (mode.extent == 1 || mode.stride == 0) continue;
      if (!separable) {
        linear = plus(linear, times(digits[k], mode.stride));
        continue;
      }
      const size_t axis = *axis_of(mode, cover, strides);
      result[axis] = plus(result[axis], times(digits[k], mode.stride / strides[axis]));
    }
  };
  add(fragment.threads(), thread);
  add(fragment.registers(), reg);
  if (separable) return result;
  for (size_t axis = 0; axis < cover.size(); ++axis) {
    result[axis] = quotient(linear, strides[axis]);
    if (axis > 0) result[axis] = remainder(result[axis], cover[axis]);
  }
  return result;
}

Expr both(const Expr& a, const Expr& b) {
  if (!a) return b;
  if (!b) return a;
  return ir::binary(BinaryOp::logical_and, a, b, a->span);
}

std::optional<layout::Fragment> in_shape(const layout::Fragment& fragment, const layout::Shape& shape) {
  if (fragment.cover() != fragment.shape() || layout::volume(shape) != layout::volume(fragment.shape()))
    return std::nullopt;
  layout::Fragment reshaped = split_by_axes(layout::Fragment(shape, fragment.threads(), fragment.registers(), shape));
  return is_separable(reshaped) ? std::optional(std::move(reshaped)) : std::nullopt;
}

Expr is_in_tile(const layout::Fragment& fragment, const Indices& at, Span span) {
  Expr condition;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    const int64_t extent = fragment.shape()[axis];
    if (fragment.cover()[axis] != extent)
      condition = both(condition, ir::binary(BinaryOp::lt, at[axis], ir::int_imm(extent), span));
  }
  return condition;
}

Expr is_first_replica(const layout::Fragment& fragment, const Indices& thread, Span span) {
  Expr condition;
  for (size_t k = 0; k < thread.size(); ++k) {
    const Mode& mode = fragment.threads().modes()[k];
    if (mode.stride == 0 && mode.extent > 1)
      condition = both(condition, ir::binary(BinaryOp::eq, thread[k], ir::int_imm(0), span));
  }
  return condition;
}

Expr offset_in(const layout::SharedLayout& memory, const Indices& indices) {
  const Shape& shape = memory.shape();
  if (memory.span() == layout::SwizzleSpan::none) {
    // Linear or padded: the rows are equally far from each other.
    Expr offset = number(0);
    const std::vector<int64_t> strides = layout::row_major_strides(shape);
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] > 1) offset = plus(offset, times(indices[axis], memory.offset(strides[axis])));
    return offset;
  }
  // Panels of rows of `width` elements; the 16-byte pieces of a row trade places by the row's number.
  const int64_t span = static_cast<int64_t>(memory.span()), columns = shape.back(), rows = shape[shape.size() - 2];
  const int64_t width = span * 8 / memory.element_bits(), piece = 128 / memory.element_bits();
  const int64_t panel = (rows + 7) / 8 * 8 * width;
  const Expr& row = indices[shape.size() - 2];
  const Expr column = columns == width ? indices.back() : remainder(indices.back(), width);
  // Rows 8 apart trade alike.
  const Expr turn = times(quotient(remainder(row, 8), 128 / span), piece);
  const auto fixed = ir::constant_int(column), turned = ir::constant_int(turn);
  Expr within = turned == 0       ? column
                : fixed && turned ? number(*fixed ^ *turned)
                                  : ir::binary(BinaryOp::bit_xor, column, turn, column->span);
  Expr offset = plus(times(row, width), within);
  if (columns != width) offset = plus(times(quotient(indices.back(), width), panel), offset);
  int64_t step = columns / width * panel;
  for (size_t axis = shape.size() - 2; axis-- > 0; step *= shape[axis])
    offset = plus(times(indices[axis], step), offset);
  return offset;
}

bool is_multiple(const Expr& expr, int64_t of) {
  if (of == 1) return true;
  if (const auto value = ir::constant_int(expr)) return *value % of == 0;
  if (const auto* cast = ir::as<ir::Cast>(expr)) return is_multiple(cast->value, of);
  const auto* node = ir::as<ir::Binary>(expr);
  if (node == nullptr) return false;
  const auto by = [&](const Expr& factor, const Expr& rest) {
    const auto value = ir::constant_int(factor);
    return value && is_multiple(rest, of / std::gcd(*value, of));
  };
  switch (node->op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::min:
    case BinaryOp::max:
      return is_multiple(node->left, of) && is_multiple(node->right, of);
    case BinaryOp::mul:
      return by(node->left, node->right) || by(node->right, node->left);
    case BinaryOp::floor_mod: {
      const auto divisor = ir::constant_int(node->right);
      return divisor && *divisor % of == 0 && is_multiple(node->left, of);
    }
    default:
      return false;
  }
}

// Bits of the lane that move by the same distance do so together, where sums of their columns carry nothing.
Expr lane_value(const layout::LaneFunction& function, const Expr& thread) {
  Expr result = number(function.base);
  int64_t used = function.base;
  for (size_t bit = 0; bit < function.columns.size();) {
    const int64_t column = function.columns[bit];
    const bool is_bit = std::has_single_bit(static_cast<uint64_t>(column));
    int64_t extent = 2, all = column;
    size_t next = bit + 1;
    for (; next < function.columns.size() && is_bit && function.columns[next] == column * extent; ++next) {
      extent *= 2;
      all |= function.columns[next];
    }
    if (column != 0) {
      const Expr term = times(remainder(quotient(thread, int64_t{1} << bit), extent), column);
      result = (used & all) == 0 ? plus(result, term) : ir::binary(BinaryOp::bit_xor, result, term, thread->span);
      used |= all;
    }
    bit = next;
  }
  return result;
}

}  // namespace tilepilot::targets::gpu
