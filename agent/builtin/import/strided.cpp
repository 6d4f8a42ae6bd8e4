#include "agent/builtin/import/strided.h"

#include <algorithm>

namespace tilepilot::agent::builtin {

int64_t numel(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Shape& strides) {
  Shape wanted = contiguous_strides(shape);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && strides[i] != wanted[i]) return false;
  return true;
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) return std::nullopt;
    result[result.size() - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

Strided Strided::contiguous(Shape shape) {
  Shape strides = contiguous_strides(shape);
  return {0, std::move(shape), std::move(strides)};
}

Strided Strided::slice(size_t axis, int64_t start, int64_t length, int64_t step) const {
  Strided result = *this;
  result.offset += start * strides[axis];
  result.sizes[axis] = length;
  result.strides[axis] *= step;
  return result;
}

Strided Strided::permute(const std::vector<int64_t>& order) const {
  Strided result{offset, {}, {}};
  for (int64_t axis : order) {
    result.sizes.push_back(sizes[static_cast<size_t>(axis)]);
    result.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return result;
}

Strided Strided::expand(const Shape& shape) const {
  Strided result{offset, shape, Shape(shape.size(), 0)};
  size_t added = shape.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == shape[added + i]) result.strides[added + i] = strides[i];
  return result;
}

std::optional<Strided> Strided::reshape(const Shape& shape) const {
  // Runs of axes that lie in memory as one axis, innermost first; each new axis must fit inside one run.
  Strided result{offset, shape, Shape(shape.size(), 0)};
  size_t next = sizes.size();
  int64_t run_left = 1, run_stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (run_left == 1) {
      while (next > 0 && sizes[next - 1] == 1) --next;
      if (next == 0) return std::nullopt;
      --next;
      run_left = sizes[next];
      run_stride = strides[next];
      while (next > 0 && (sizes[next - 1] == 1 || strides[next - 1] == run_stride * run_left)) {
        --next;
        run_left *= sizes[next];
      }
    }
    if (run_left % shape[i] != 0) return std::nullopt;
    result.strides[i] = run_stride;
    run_left /= shape[i];
    run_stride *= shape[i];
  }
  return result;
}

}  // namespace tilepilot::agent::builtin
