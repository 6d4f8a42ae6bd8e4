// Shapes of tiles, and the order in which a tile's elements are counted: row-major, the last axis fastest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/layout/layout.h"

namespace tilepilot::layout {

// One extent an axis; no axes: a single element.
using Shape = std::vector<int64_t>;
using Coordinates = std::vector<int64_t>;

int64_t volume(std::span<const int64_t> shape);
// What one step along each axis counts for. @post row_major_strides({2, 3, 4}) == {12, 4, 1}
std::vector<int64_t> row_major_strides(const Shape& shape);

// @post coordinates(shape, row_major_index(shape, c)) == c for each c within the shape
int64_t row_major_index(const Shape& shape, const Coordinates& coordinates);
Coordinates coordinates(const Shape& shape, int64_t index);

// The layout from row-major indices of `shape` to places, `strides[axis]` a step.
// @post result(row_major_index(shape, c)) == the sum of c[axis] * strides[axis]
Layout axes_layout(const Shape& shape, const std::vector<int64_t>& strides);

}  // namespace tilepilot::layout
