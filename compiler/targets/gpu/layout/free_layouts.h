// The partitions that a fragment, or a loop, can be given where nothing demands one: what layout_cost.h ranks.
#pragma once

#include <string>
#include <vector>

#include "compiler/layout/fragment.h"
#include "compiler/layout/partition.h"

namespace tilepilot::targets::gpu {

struct FreeLayout {
  std::string name;  // "rows, vectors of 8"
  layout::Fragment fragment;
};

// What is to be dealt out, and what its uses would like.
struct FreeTile {
  layout::Shape shape;
  int64_t threads = 1;
  int64_t vector = 1;              // elements of 16 bytes
  std::vector<size_t> neighbours;  // axes along which elements are neighbours in some memory
  std::vector<size_t> reduced;     // axes along which threads combine what they hold
};

// The plain partition: contiguous vectors, row by row, such that it can be reduced along any axis.
layout::Fragment plain_fragment(const FreeTile& tile);
// Contiguous vectors, whatever rows they belong to; but row by row where threads would have to divide to find the row
// of a vector, so that nothing shows that it lies in one. Single elements never go row by row.
// @post complete; separable if a vector has two elements or more
layout::Fragment dealt_out(const layout::Shape& shape, layout::Workers workers);
// That of loops that name no fragment.
layout::Fragment plain_loop(const FreeTile& tile);

// Others, in no order, some of which may be equal.
// @post each is complete, all its modes stay within one axis
std::vector<FreeLayout> other_layouts(const FreeTile& tile);

}  // namespace tilepilot::targets::gpu
