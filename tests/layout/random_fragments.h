// Fragments to check laws on.
#pragma once

#include "compiler/layout/fragment.h"
#include "tests/layout/random_layouts.h"

namespace tilepilot::layout::testing {

// Random steps along random axes for threads and registers; each element has as many owners as there are replicas.
inline Fragment random_fragment(RandomLayouts& random) {
  Shape shape;
  for (int64_t rank = random.pick(1, 3); rank > 0; --rank) shape.push_back(random.pick(1, 12));
  const std::vector<int64_t> strides = row_major_strides(shape);
  std::vector<Mode> modes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    for (const Mode& mode : random.factors(shape[axis], strides[axis])) modes.push_back(mode);
  }
  random.shuffle(modes);
  const auto split = modes.begin() + random.pick(0, int64_t(modes.size()));
  std::vector<Mode> threads(modes.begin(), split), registers(split, modes.end());
  if (random.pick(0, 2) == 0) {
    threads.insert(threads.begin() + random.pick(0, int64_t(threads.size())), Mode{random.pick(2, 4), 0});
  }
  return Fragment(shape, Layout(std::move(threads)), Layout(std::move(registers)));
}

}  // namespace tilepilot::layout::testing
