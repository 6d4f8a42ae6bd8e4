// What neighbours of a parallel loop access around each other: every second element, the element beside their own, one
// element for two of them. Where such places lie within a few vectors, a thread loads these, and each lane takes its
// element of them; where lanes store to all elements of vectors, a thread stores these.
//
//   y[i] = x[i - 1] + x[i + 1]      four lanes load x[i - 4] to x[i + 7] in three vectors of four
//   y[i] = x[2 * i + 1]             four lanes load x[2 * i] to x[2 * i + 7] in two
//   y[2 * i] = a, y[2 * i + 1] = b  four lanes store y[2 * i] to y[2 * i + 7] in two
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/targets/gpu/layout/vector_access.h"

namespace tilepilot::targets::gpu {

// @invariant `first`, `count` and where element 0 lies in its row are multiples of `elements`
struct LaneWindow {
  ir::Buffer buffer;
  std::vector<ir::Expr> start;  // indices of element 0
  std::string base;             // alike for windows whose elements 0 lie `origin` elements behind the same element
  int64_t origin = 0;
  int64_t elements = 1;          // loaded at once: a power of two
  int64_t first = 0, count = 0;  // of the elements that are loaded: from `first` on, counted from element 0
  std::vector<int64_t> taken;    // by the lanes, counted from element 0

  int64_t loads() const { return count / elements; }
};

// Of an access with these indices by `lanes` neighbours along `lane`; none if it takes no fewer vectors than it has
// elements.
std::optional<LaneWindow> lane_window(const Surroundings& around, const ir::Buffer& buffer,
                                      const std::vector<ir::Expr>& indices, const ir::Var& lane, int64_t lanes);

// One window of all elements that both have, if these overlap.
std::optional<LaneWindow> joined(const LaneWindow& a, const LaneWindow& b);

// Whether each element of the window is taken by one lane of one part, and no other one.
bool is_covered(const LaneWindow& all, const std::vector<const LaneWindow*>& parts);
// Whether each is taken at all.
bool is_all_taken(const LaneWindow& all, const std::vector<const LaneWindow*>& parts);

// Where in the window, counted from `first`, what `lane` takes lies; null if that is no sum, quotient or remainder.
ir::Expr place_in_window(const std::vector<int64_t>& taken, int64_t first, const ir::Var& lane);

}  // namespace tilepilot::targets::gpu
