#include "compiler/layout/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tilepilot::layout {
namespace {

constexpr int64_t kSide = 36, kMargin = 28;

struct Square {
  std::string fill;
  std::vector<std::string> lines;
};

// Neighbouring numbers get hues far apart: steps of 137 degrees do not meet again for long.
std::string colour(int64_t number) { return fmt::format("hsl({},65%,80%)", number * 137 % 360); }

std::string square_text(const Square& square, int64_t x, int64_t y) {
  std::string text = fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, y, kSide,
                                 kSide, square.fill);
  const int64_t count = int64_t(square.lines.size());
  for (int64_t i = 0; i < count; ++i) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + kSide / 2, y + kSide * (2 * i + 1) / (2 * count),
                        square.lines[size_t(i)]);
  }
  return text;
}

std::string label(int64_t number, int64_t x, int64_t y) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"label\">{}</text>\n", x, y, number);
}

// `square` gives the drawing of a row-major index; `title` has no markup in it.
std::string drawing(const Shape& shape, TableLimits limits, const std::string& title,
                    const std::function<Square(int64_t)>& square) {
  const int64_t all_columns = shape.empty() ? 1 : shape.back(), all_rows = volume(shape) / all_columns;
  const int64_t rows = std::min(all_rows, limits.rows), columns = std::min(all_columns, limits.columns);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n<title>{}</title>\n"
      "<style>rect{{stroke:#555}}text{{font:11px sans-serif;text-anchor:middle;dominant-baseline:central}}"
      ".label{{fill:#555}}</style>\n",
      kMargin + columns * kSide + 1, kMargin + rows * kSide + 1, title);
  for (int64_t column = 0; column < columns; ++column) {
    text += label(column, kMargin + column * kSide + kSide / 2, kMargin / 2);
  }
  for (int64_t row = 0; row < rows; ++row) {
    text += label(row, kMargin / 2, kMargin + row * kSide + kSide / 2);
    for (int64_t column = 0; column < columns; ++column) {
      text += square_text(square(row * all_columns + column), kMargin + column * kSide, kMargin + row * kSide);
    }
  }
  return text + "</svg>\n";
}

}  // namespace

std::string svg(const Fragment& fragment, TableLimits limits) {
  return drawing(fragment.shape(), limits, to_text(fragment), [&](int64_t element) -> Square {
    const std::vector<Place> owners = fragment.owners(element);
    if (owners.empty()) return {"#fff", {"-"}};
    return {colour(owners[0].thread), {fmt::format("T{}", owners[0].thread), fmt::format("r{}", owners[0].reg)}};
  });
}

std::string svg(const SharedLayout& layout, TableLimits limits) {
  return drawing(layout.shape(), limits, to_text(layout), [&](int64_t element) -> Square {
    const int64_t offset = layout.offset(element);
    return {colour(offset * layout.element_bits() / 32 % 32), {fmt::format("{}", offset)}};
  });
}

}  // namespace tilepilot::layout
