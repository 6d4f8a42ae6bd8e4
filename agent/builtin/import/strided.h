// A view of a contiguous tensor: offset, sizes and strides in elements, as ATen has them. Pure arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tilepilot::agent::builtin {

using Shape = std::vector<int64_t>;

int64_t numel(const Shape& shape);
Shape contiguous_strides(const Shape& shape);
// True if a tensor of this shape and strides is row-major without gaps (axes of extent 1 may have any stride).
bool is_contiguous(const Shape& shape, const Shape& strides);
// The common shape of operands under PyTorch's broadcasting; nullopt if they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

struct Strided {
  int64_t offset = 0;
  Shape sizes;
  Shape strides;

  static Strided contiguous(Shape shape);
  Strided slice(size_t axis, int64_t start, int64_t length, int64_t step) const;
  Strided permute(const std::vector<int64_t>& order) const;
  // Broadcast to `shape`: new and stretched axes have stride 0.
  Strided expand(const Shape& shape) const;
  // nullopt if no strides describe the result, that is if PyTorch would copy.
  std::optional<Strided> reshape(const Shape& shape) const;
};

}  // namespace tilepilot::agent::builtin
