#include "compiler/targets/gpu/layout/free_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/layout/partition.h"
#include "compiler/targets/gpu/facts/coordinates.h"

namespace tilepilot::targets::gpu {

using layout::Fragment;
using layout::Shape;

namespace {

// Elements that threads share out among themselves along the axes of a tile.
struct Dealing {
  size_t axis = 0;           // dealt out first
  int64_t vector = 1;        // neighbours along it that a thread holds
  int64_t most = INT64_MAX;  // threads along it, as long as there are other axes for them
  size_t second = 0;         // another axis along which a thread holds neighbours
  int64_t block = 1;
};

// Powers of two of the threads along one axis after the other, then the odd factor of their number along an axis that
// is long enough; threads that are left hold the same again.
class Dealer {
 public:
  Dealer(const FreeTile& tile, const Dealing& dealing)
      : tile_(tile), shape_(tile.shape), left_(tile.threads & -tile.threads), unit_(shape_.size(), 1) {
    unit_[dealing.axis] = std::gcd(dealing.vector, shape_[dealing.axis]);
    if (dealing.second != dealing.axis) unit_[dealing.second] = std::gcd(dealing.block, shape_[dealing.second]);
    grow(dealing.axis, dealing.most);
    if (dealing.second != dealing.axis) grow(dealing.second);
    // Threads along axes that are reduced have to tell each other what they hold: these come last.
    for (const bool reduced : {false, true})
      for (size_t axis = shape_.size(); axis-- > 0;)
        if (is_reduced(axis) == reduced) grow(axis);
    grow(dealing.axis);
    deal_odd(tile.threads / (tile.threads & -tile.threads));
    registers_ = {{dealing.axis, unit_[dealing.axis]}};
    if (dealing.second != dealing.axis) registers_.push_back({dealing.second, unit_[dealing.second]});
  }

  Fragment fragment() const {
    Shape cover = shape_;
    std::vector<int64_t> once = unit_;
    for (const auto& [axis, count] : threads_) once[axis] *= count;
    for (size_t axis = 0; axis < cover.size(); ++axis)
      cover[axis] = (cover[axis] + once[axis] - 1) / once[axis] * once[axis];
    const std::vector<int64_t> strides = layout::row_major_strides(cover);
    std::vector<int64_t> reach = unit_;
    std::vector<layout::Mode> threads, registers;
    int64_t used = 1;
    for (const auto& [axis, count] : threads_) {
      threads.push_back({count, reach[axis] * strides[axis]});
      reach[axis] *= count;
      used *= count;
    }
    if (tile_.threads > used) threads.push_back({tile_.threads / used, 0});
    for (const auto& [axis, count] : registers_) registers.push_back({count, strides[axis]});
    for (size_t axis = shape_.size(); axis-- > 0;)
      registers.push_back({cover[axis] / once[axis], once[axis] * strides[axis]});
    return Fragment(shape_, layout::Layout(std::move(threads)), layout::Layout(std::move(registers)), cover);
  }

 private:
  struct Part {
    size_t axis;
    int64_t count;
  };
  const FreeTile& tile_;
  const Shape& shape_;
  int64_t left_;
  std::vector<int64_t> unit_;
  std::vector<Part> threads_, registers_;

  bool is_reduced(size_t axis) const {
    return std::find(tile_.reduced.begin(), tile_.reduced.end(), axis) != tile_.reduced.end();
  }

  // How far a thread's neighbours and the threads along an axis reach.
  int64_t reach_of(size_t axis) const {
    int64_t reach = unit_[axis];
    for (const Part& part : threads_) reach *= part.axis == axis ? part.count : 1;
    return reach;
  }

  void deal_odd(int64_t count) {
    if (count == 1) return;
    for (const bool even : {true, false}) {
      for (const bool reduced : {false, true}) {
        for (size_t axis = shape_.size(); axis-- > 0;) {
          const int64_t reach = reach_of(axis), rounds = (shape_[axis] + reach - 1) / reach;
          if (is_reduced(axis) != reduced || rounds < count || (even && rounds % count != 0)) continue;
          threads_.push_back({axis, count});
          return;
        }
      }
    }
  }

  void grow(size_t axis, int64_t most = INT64_MAX) {
    const int64_t reach = reach_of(axis);
    int64_t count = 1;
    while (left_ > 1 && count < most && reach * count < shape_[axis]) count *= 2, left_ /= 2;
    if (count > 1) threads_.push_back({axis, count});
  }
};

// As many vectors as there are threads, at least: a longer vector would leave threads idle.
int64_t busy_vector(const FreeTile& tile) {
  int64_t vector = tile.vector;
  while (vector > 1 && layout::volume(tile.shape) / vector < tile.threads) vector /= 2;
  return vector;
}

std::string name_of(const Dealing& dealing) {
  std::string name = fmt::format("axis {} first", dealing.axis);
  if (dealing.vector > 1) name += fmt::format(", vectors of {}", dealing.vector);
  if (dealing.block > 1) name += fmt::format(", {} along axis {}", dealing.block, dealing.second);
  if (dealing.most != INT64_MAX) name += fmt::format(", {} threads there", dealing.most);
  return name;
}

Fragment dealt_by_rows(const Shape& shape, layout::Workers workers) {
  Fragment rows =
      split_by_axes(shape.size() >= 2 ? layout::partition_rows(shape, workers) : layout::partition(shape, workers));
  if (is_separable(rows)) return rows;
  return Dealer({shape, workers.threads, workers.vector, {}, {}}, {shape.size() - 1, workers.vector}).fragment();
}

}  // namespace

Fragment plain_fragment(const FreeTile& tile) { return dealt_by_rows(tile.shape, {tile.threads, busy_vector(tile)}); }

Fragment dealt_out(const Shape& shape, layout::Workers workers) {
  Fragment flat = split_by_axes(layout::partition(shape, workers));
  const bool has_vectors = std::gcd(workers.vector, shape.back()) > 1;
  return has_vectors && !is_separable(flat) ? dealt_by_rows(shape, workers) : flat;
}

Fragment plain_loop(const FreeTile& tile) { return dealt_out(tile.shape, {tile.threads, busy_vector(tile)}); }

std::vector<FreeLayout> other_layouts(const FreeTile& tile) {
  std::vector<Dealing> dealings;
  const size_t last = tile.shape.size() - 1;
  std::vector<size_t> axes{last};
  for (const size_t axis : tile.neighbours)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  for (const size_t axis : axes) {
    for (int64_t vector = tile.vector; vector >= 1; vector /= 2) dealings.push_back({axis, vector});
    // Two vectors of 16 bytes are a sector. A warp along an axis that is reduced needs no other one.
    if (axes.size() > 1)
      for (const int64_t most : {2, 8}) dealings.push_back({axis, tile.vector, most});
    if (!tile.reduced.empty() && tile.threads > layout::kWarpSize)
      for (const int64_t vector : {tile.vector, std::max<int64_t>(1, tile.vector / 2)})
        dealings.push_back({axis, vector, layout::kWarpSize});
    for (const size_t second : axes)
      for (int64_t block = tile.vector; second != axis && block >= 2; block /= 2)
        dealings.push_back({axis, tile.vector, 2, second, block});
  }
  std::vector<FreeLayout> layouts;
  for (const Dealing& dealing : dealings) layouts.push_back({name_of(dealing), Dealer(tile, dealing).fragment()});
  return layouts;
}

}  // namespace tilepilot::targets::gpu
