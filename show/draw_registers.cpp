#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "show/drawings.h"

namespace tilepilot::show {
namespace {

constexpr double kWide = 34, kHigh = 28, kMargin = 34;
constexpr int64_t kColumnsOfVector = 32;

// Neighbouring numbers get hues far apart.
std::string colour(int64_t number) { return fmt::format("hsl({},65%,80%)", number * 137 % 360); }

std::string place_text(const layout::Place& place, int64_t first_thread) {
  const int64_t thread = first_thread + place.thread;
  return fmt::format("thread {} (warp {}, lane {}), register {}", thread, thread / 32, thread % 32, place.reg);
}

// Cells with the thread and the register of each element.
void draw_cells(Svg& svg, const RegisterTile& tile, const std::vector<layout::Place>& owners, const Grid& grid,
                int64_t rows, int64_t columns, double top) {
  for (int64_t column = 0; column < columns; ++column)
    svg.text(kMargin + kWide * (static_cast<double>(column) + 0.5), top + 12, fmt::format("{}", column), "tp-t tp-m");
  for (int64_t row = 0; row < rows; ++row) {
    const double y = top + 18 + kHigh * static_cast<double>(row);
    svg.text(kMargin - 5, y + kHigh / 2 + 4, fmt::format("{}", row), "tp-t tp-e");
    for (int64_t column = 0; column < columns; ++column) {
      const double x = kMargin + kWide * static_cast<double>(column);
      const int64_t element = row * grid.columns + column;
      if (element >= static_cast<int64_t>(owners.size())) continue;
      const layout::Place& owner = owners[static_cast<size_t>(element)];
      if (owner.thread < 0) {
        svg.rect(x, y, kWide, kHigh, "tp-none", {fmt::format("element {}: no thread holds it", element), tile.line});
        continue;
      }
      const std::string title =
          fmt::format("{}[{}, {}]: {}", tile.name, row, column, place_text(owner, tile.first_thread));
      svg.rect(x, y, kWide, kHigh, colour(owner.thread), {title, tile.line});
      svg.text(x + kWide / 2, y + 12, fmt::format("T{}", tile.first_thread + owner.thread), "tp-c");
      svg.text(x + kWide / 2, y + 24, fmt::format("r{}", owner.reg), "tp-c");
    }
  }
}

// The whole tile, a colour a warp.
void draw_map(Svg& svg, const RegisterTile& tile, const std::vector<layout::Place>& owners, const Grid& grid,
              int64_t most, double top) {
  const int64_t rows = std::min(grid.rows, most), columns = std::min(grid.columns, most);
  const double side = std::clamp(512.0 / static_cast<double>(std::max(rows, columns)), 2.0, 8.0);
  std::map<int64_t, std::string> paths;  // by warp
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns;) {
      const auto warp_at = [&](int64_t at) {
        const int64_t element = row * grid.columns + at;
        if (element >= static_cast<int64_t>(owners.size())) return int64_t{-1};
        const layout::Place& owner = owners[static_cast<size_t>(element)];
        return owner.thread < 0 ? int64_t{-1} : (tile.first_thread + owner.thread) / 32;
      };
      const int64_t warp = warp_at(column), begin = column;
      while (column < columns && warp_at(column) == warp) ++column;
      if (warp < 0) continue;
      const double width = side * static_cast<double>(column - begin);
      paths[warp] +=
          fmt::format("M{} {}h{}v{}h-{}z", number(kMargin + side * static_cast<double>(begin)),
                      number(top + side * static_cast<double>(row)), number(width), number(side), number(width));
    }
  }
  for (const auto& [warp, path] : paths)
    svg.path(path, colour(warp * 3 + 1),
             {fmt::format("{}: warp {} (threads {} to {})", tile.name, warp, warp * 32, warp * 32 + 31), tile.line});
  double x = kMargin;
  const double bottom = top + side * static_cast<double>(rows) + 8;
  for (const auto& [warp, path] : paths) {
    svg.rect(x, bottom, 12, 12, colour(warp * 3 + 1));
    svg.text(x + 16, bottom + 11, fmt::format("warp {}", warp));
    x += 72;
  }
  svg.extend(std::max(x, kMargin + side * static_cast<double>(columns)), bottom + 16);
}

}  // namespace

Grid::Grid(const layout::Shape& shape) {
  const int64_t all = layout::volume(shape);
  columns = shape.empty() ? 1 : shape.size() == 1 ? std::min(shape.back(), kColumnsOfVector) : shape.back();
  rows = columns == 0 ? 0 : (all + columns - 1) / columns;
}

std::vector<layout::Place> first_owners(const layout::Fragment& fragment) {
  std::vector<layout::Place> owners(static_cast<size_t>(layout::volume(fragment.shape())));
  for (int64_t reg = 0; reg < fragment.register_count(); ++reg) {
    for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
      const auto element = fragment.element({thread, reg});
      if (!element) continue;
      layout::Place& owner = owners[static_cast<size_t>(*element)];
      if (owner.thread < 0) owner = {thread, reg};
    }
  }
  return owners;
}

std::string shape_text(const layout::Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string crop_text(int64_t shown, int64_t all, std::string_view what) {
  return shown >= all ? "" : fmt::format("{} 0 to {} of {}", what, shown - 1, all);
}

Svg draw(const RegisterTile& tile, const DrawingLimits& limits) {
  const layout::Fragment& fragment = tile.fragment;
  const Grid grid(fragment.shape());
  const int64_t rows = std::min(grid.rows, limits.rows), columns = std::min(grid.columns, limits.columns);
  Svg svg(fmt::format("registers of {}", tile.name));
  svg.caption(fmt::format("{}: {} {}{}", tile.name, tile.type, shape_text(fragment.shape()),
                          tile.role.empty() ? "" : ", of the " + tile.role),
              true);
  std::string words =
      fmt::format("{} threads hold {} registers of it each", fragment.thread_count(), fragment.register_count());
  if (fragment.replicas() > 1)
    words += fmt::format("; {} threads hold the same, the first is named", fragment.replicas());
  if (fragment.shape().size() > 2) words += "; the leading axes stand one under the other";
  if (fragment.shape().size() == 1) words += fmt::format("; {} elements a row", grid.columns);
  svg.caption(words);
  const std::string row_crop = crop_text(rows, grid.rows, "rows"),
                    column_crop = crop_text(columns, grid.columns, "columns");
  const bool cropped = !row_crop.empty() || !column_crop.empty();
  if (cropped) {
    const bool map_cropped = std::max(grid.rows, grid.columns) > limits.map_side;
    svg.caption(fmt::format("cells: {}{}{}; below, the tile by warp{}", row_crop,
                            row_crop.empty() || column_crop.empty() ? "" : ", ", column_crop,
                            map_cropped ? fmt::format(" (its first {} rows and columns)", limits.map_side) : ""));
  }
  const double top = svg.top();
  const std::vector<layout::Place> owners = first_owners(fragment);
  draw_cells(svg, tile, owners, grid, rows, columns, top);
  if (cropped) draw_map(svg, tile, owners, grid, limits.map_side, top + 18 + kHigh * static_cast<double>(rows) + 16);
  return svg;
}

}  // namespace tilepilot::show
