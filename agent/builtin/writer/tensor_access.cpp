#include "agent/builtin/writer/tensor_access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilepilot::agent::builtin {

Shape TensorAccess::shape() const {
  Shape result;
  for (auto& axis : axes) result.push_back(axis.extent);
  return result;
}

std::string TensorAccess::shape_text() const {
  std::vector<std::string> sizes;
  for (auto& axis : axes) sizes.push_back(axis.size);
  return fmt::format("({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
}

namespace {

// A number as a multiple of a loop's size where it is one.
std::string in_terms_of(int64_t value, const LoopAxis& loop) {
  if (value == loop.extent) return loop.size;
  if (loop.extent > 1 && value % loop.extent == 0) return fmt::format("{} * {}", value / loop.extent, loop.size);
  return std::to_string(value);
}

AccessAxis make_axis(const TilePlan& plan, int loop, int64_t extent, int64_t offset) {
  AccessAxis axis{loop, extent, offset, std::to_string(extent), offset ? std::to_string(offset) : ""};
  if (loop < 0) return axis;
  axis.size = in_terms_of(extent, plan.loop(loop));
  if (offset) axis.start = in_terms_of(offset, plan.loop(loop));
  return axis;
}

}  // namespace

std::optional<TensorAccess> describe_access(const TilePlan& plan, const Shape& strides, int64_t offset, int64_t total) {
  std::vector<int> loops;
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] != 0) loops.push_back(static_cast<int>(i));
  auto stride = [&](int loop) { return strides[static_cast<size_t>(loop)]; };
  std::stable_sort(loops.begin(), loops.end(), [&](int a, int b) { return stride(a) > stride(b); });
  TensorAccess access;
  int64_t left = total;  // elements of one step of the axis before
  for (int loop : loops) {
    if (left % stride(loop) != 0) return std::nullopt;
    int64_t extent = left / stride(loop), start = offset / stride(loop) % extent;
    if (start + plan.loop(loop).extent > extent) return std::nullopt;
    access.axes.push_back(make_axis(plan, loop, extent, start));
    left = stride(loop);
  }
  if (left > 1 || access.axes.empty()) access.axes.push_back(make_axis(plan, -1, left, offset % left));
  return access;
}

}  // namespace tilepilot::agent::builtin
