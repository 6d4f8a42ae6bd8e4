// Layouts as index expressions: where a thread, and a register of it, stands in a tile, and where an element of a tile
// lies in shared memory.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/layout/fragment.h"
#include "compiler/layout/shared_layout.h"
#include "compiler/layout/warp_moves.h"

namespace tilepilot::targets::gpu {

using Indices = std::vector<ir::Expr>;

// The digits of `index`, an int32 expression of a value in [0, layout.size()), one a mode.
Indices digits_of(const layout::Layout& layout, const ir::Expr& index);

// The coordinates, in the cover, of the place with these digits of its thread and its register.
// @post for constants, coordinates(cover, threads(t) + registers(r))
Indices coordinates_of(const layout::Fragment& fragment, const Indices& thread, const Indices& reg);
// The same function with modes that each stay within an axis of the cover, as far as axes divide them.
layout::Layout split_by_axes(const layout::Layout& layout, const layout::Shape& cover);
layout::Fragment split_by_axes(const layout::Fragment& fragment);
// The axis of `cover` that a mode runs along without leaving it, if there is one.
std::optional<size_t> axis_of(const layout::Mode& mode, const layout::Shape& cover);
// Whether each coordinate is a sum of multiples of digits: no mode runs across the end of an axis, no sum carries.
bool is_separable(const layout::Fragment& fragment);

// The elements, which follow each other in the same order, in another shape; none if a coordinate were no such sum.
std::optional<layout::Fragment> in_shape(const layout::Fragment& fragment, const layout::Shape& shape);

// Whether the place with these coordinates in the cover lies in the tile: a conjunction over the axes where the cover
// is longer; null if there are none.
ir::Expr is_in_tile(const layout::Fragment& fragment, const Indices& at, Span span);
// Whether a thread with these digits is the first of those that hold the same; null if there are no others.
ir::Expr is_first_replica(const layout::Fragment& fragment, const Indices& thread, Span span);
// Both conditions; null stands for true.
ir::Expr both(const ir::Expr& a, const ir::Expr& b);

// The offset in elements of the element with these coordinates.
// @post for constants, layout.offset of their row-major index
ir::Expr offset_in(const layout::SharedLayout& layout, const Indices& indices);

// The value of a function of the lane, by the number of its thread.
// @post for constants, function(thread % 32)
ir::Expr lane_value(const layout::LaneFunction& function, const ir::Expr& thread);

// Arithmetic on int32 expressions, shortened where an operand is a constant; quotients and remainders let go of terms
// that are multiples of the divisor.
ir::Expr plus(const ir::Expr& a, const ir::Expr& b);
ir::Expr times(const ir::Expr& a, int64_t factor);
ir::Expr quotient(const ir::Expr& a, int64_t divisor);
ir::Expr remainder(const ir::Expr& a, int64_t divisor);
// Whether it is sure to be a multiple of the number, by its form alone.
bool is_multiple(const ir::Expr& expr, int64_t of);

// A power of two that divides the expression's value whatever its variables are; more than that is of no interest.
constexpr int64_t kLargestFactor = int64_t{1} << 20;
int64_t known_factor(const ir::Expr& expr);

}  // namespace tilepilot::targets::gpu
