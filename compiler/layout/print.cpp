#include "compiler/layout/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace tilepilot::layout {
namespace {

using Cells = std::vector<std::vector<std::string>>;

std::string shape_text(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ",")); }

std::string plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// The coordinates before the last axis.
std::string row_label(const Shape& shape, int64_t row) {
  if (shape.size() < 2) return "";
  return fmt::format("{}", fmt::join(coordinates(Shape(shape.begin(), shape.end() - 1), row), ","));
}

// A line of column numbers, then the rows, labels first; `cell` gives the text for a row-major index.
Cells table_cells(const Shape& shape, TableLimits limits, const std::function<std::string(int64_t)>& cell) {
  const int64_t columns = shape.empty() ? 1 : shape.back(), rows = volume(shape) / columns;
  const int64_t shown = std::min(columns, limits.columns);
  Cells cells(1, std::vector<std::string>(1));
  for (int64_t column = 0; column < shown; ++column) cells[0].push_back(fmt::format("{}", column));
  for (int64_t row = 0; row < std::min(rows, limits.rows); ++row) {
    cells.push_back({row_label(shape, row)});
    for (int64_t column = 0; column < shown; ++column) cells.back().push_back(cell(row * columns + column));
  }
  return cells;
}

// What the limits have left out.
std::string left_out(const Shape& shape, TableLimits limits) {
  const int64_t columns = shape.empty() ? 1 : shape.back(), rows = volume(shape) / columns;
  std::vector<std::string> left;
  if (rows > limits.rows) left.push_back(plural(rows - limits.rows, "more row"));
  if (columns > limits.columns) left.push_back(plural(columns - limits.columns, "more column"));
  return left.empty() ? "" : fmt::format("... {}\n", fmt::join(left, ", "));
}

std::string aligned(const Cells& cells) {
  std::vector<size_t> widths(cells[0].size(), 0);
  for (const auto& row : cells) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:>{}}", row[i], widths[i] + (i > 0 ? 2 : 0));
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Fragment& fragment) {
  std::string text =
      fmt::format("fragment {}: {} x {}", shape_text(fragment.shape()), plural(fragment.thread_count(), "thread"),
                  plural(fragment.register_count(), "register"));
  if (fragment.replicas() > 1) text += fmt::format(", {} replicas", fragment.replicas());
  text += fmt::format("; threads {}, registers {}", to_text(coalesce(fragment.threads())),
                      to_text(coalesce(fragment.registers())));
  if (fragment.cover() != fragment.shape()) text += fmt::format(" over {}", shape_text(fragment.cover()));
  return text;
}

std::string to_text(const SharedLayout& layout) {
  std::string text = fmt::format("shared {}: {} x {} bits, {}", shape_text(layout.shape()), layout.size(),
                                 layout.element_bits(), to_text(layout.base()));
  if (layout.span() != SwizzleSpan::none) text += fmt::format(", swizzled in {} bytes", int64_t(layout.span()));
  return text + fmt::format(", aligned to {} bytes", layout.alignment());
}

std::string table(const Fragment& fragment, TableLimits limits) {
  const auto cell = [&](int64_t element) -> std::string {
    const std::vector<Place> owners = fragment.owners(element);
    return owners.empty() ? "-" : fmt::format("{}:{}", owners[0].thread, owners[0].reg);
  };
  return to_text(fragment) + "\n" + aligned(table_cells(fragment.shape(), limits, cell)) +
         left_out(fragment.shape(), limits);
}

std::string table(const SharedLayout& layout, TableLimits limits) {
  const auto cell = [&](int64_t element) { return fmt::format("{}", layout.offset(element)); };
  return to_text(layout) + "\n" + aligned(table_cells(layout.shape(), limits, cell)) + left_out(layout.shape(), limits);
}

}  // namespace tilepilot::layout
