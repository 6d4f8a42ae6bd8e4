// How the two boxes of a copy lie on each other, as a matrix of rows where that is possible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

// A region as a matrix: its axes of extent 1 are fixed, at most two others are left. Elements of a row are neighbours.
struct MatrixView {
  std::string at;                               // address of the first element
  std::string stride;                           // between rows
  int64_t rows = 1, columns = 1;                // extents
  std::optional<size_t> row_axis, column_axis;  // axes of the buffer; none: extent 1
};
// Nullopt if the region has more than two axes of extent above 1, or its rows are strided.
std::optional<MatrixView> matrix_view(c::Context& context, const ir::Region& region);

// "window{...}": the part of a region of a global buffer that lies inside it; empty if all of it does, for all blocks.
std::string window_of(c::Context& context, const ir::Region& region, const MatrixView& view);

// "rows<const float>{A + ..., 1024}"
std::string rows_of(const ir::Region& region, const MatrixView& view, bool is_const);

}  // namespace tilepilot::targets::cpu
