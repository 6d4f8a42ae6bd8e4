// The four drawings. What is left out for want of room says so in the drawing.
#pragma once

#include "show/picture.h"
#include "show/svg.h"

namespace tilepilot::show {

struct DrawingLimits {
  int64_t rows = 16, columns = 32;  // of cells with text
  int64_t map_side = 256;           // elements of a map of warps, along each axis
  size_t segments = 2500;           // of a timeline
};

Svg draw(const RegisterTile& tile, const DrawingLimits& limits = {});
Svg draw(const SharedPicture& tile, const DrawingLimits& limits = {});
Svg draw(const Timeline& timeline, const DrawingLimits& limits = {});
Svg draw(const RooflinePicture& roofline);

// "[64, 32]".
std::string shape_text(const layout::Shape& shape);
// "rows 0 to 15 of 128"; empty: all are shown.
std::string crop_text(int64_t shown, int64_t all, std::string_view what);

// A tile as rows and columns: the last axis goes along, of one axis alone 32 elements a row.
struct Grid {
  int64_t rows = 1, columns = 1;
  explicit Grid(const layout::Shape& shape);
};

// The first owner of each element, by register, then by thread.
std::vector<layout::Place> first_owners(const layout::Fragment& fragment);

}  // namespace tilepilot::show
