#include "compiler/layout/shape.h"

#include <cassert>

namespace tilepilot::layout {

int64_t volume(std::span<const int64_t> shape) {
  int64_t volume = 1;
  for (int64_t extent : shape) volume *= extent;
  return volume;
}

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

int64_t row_major_index(const Shape& shape, const Coordinates& coordinates) {
  assert(shape.size() == coordinates.size());
  int64_t index = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) index = index * shape[axis] + coordinates[axis];
  return index;
}

Coordinates coordinates(const Shape& shape, int64_t index) {
  Coordinates coordinates(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0;) {
    coordinates[axis] = index % shape[axis];
    index /= shape[axis];
  }
  assert(index == 0);
  return coordinates;
}

Layout axes_layout(const Shape& shape, const std::vector<int64_t>& strides) {
  assert(shape.size() == strides.size());
  std::vector<Mode> modes;
  for (size_t axis = shape.size(); axis-- > 0;) modes.push_back({shape[axis], strides[axis]});
  return Layout(std::move(modes));
}

}  // namespace tilepilot::layout
