#include "compiler/layout/shared_layout.h"

#include <fmt/format.h>

namespace tilepilot::layout {
namespace {

int64_t row_length(const Shape& shape) { return shape.empty() ? 1 : shape.back(); }

int64_t rounded_up(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// (column in panel, panel, row, leading axes) -> offset. Panels start at multiples of 8 rows, where the swizzle's
// pattern begins.
Layout in_panels(const Shape& shape, int64_t width) {
  const int64_t panels = shape.back() / width;
  const int64_t rows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  const int64_t matrices = volume(shape) / (rows * shape.back());
  const int64_t panel_size = rounded_up(rows, 8) * width;
  return coalesce(Layout{{width, 1}, {panels, panel_size}, {rows, width}, {matrices, panels * panel_size}});
}

}  // namespace

SharedLayout::SharedLayout(Shape shape, int64_t element_bits, Layout base, SwizzleSpan span)
    : shape_(std::move(shape)),
      element_bits_(element_bits),
      base_(std::move(base)),
      span_(span),
      swizzle_(swizzle_of(span, element_bits)) {}

SharedLayout SharedLayout::linear(Shape shape, int64_t element_bits) {
  return padded(std::move(shape), element_bits, 0);
}

SharedLayout SharedLayout::padded(Shape shape, int64_t element_bits, int64_t padding) {
  const int64_t length = row_length(shape), rows = volume(shape) / length;
  Layout base = coalesce(Layout{{length, 1}, {rows, length + padding}});
  return SharedLayout(std::move(shape), element_bits, std::move(base), SwizzleSpan::none);
}

std::optional<SharedLayout> SharedLayout::swizzled(Shape shape, int64_t element_bits, SwizzleSpan span,
                                                   std::string* why) {
  const int64_t bits = row_length(shape) * element_bits, span_bits = int64_t(span) * 8;
  if (bits % span_bits != 0) {
    if (why != nullptr) *why = fmt::format("rows of {} bits are no multiple of {} bytes", bits, int64_t(span));
    return std::nullopt;
  }
  Layout base = in_panels(shape, span_bits / element_bits);
  return SharedLayout(std::move(shape), element_bits, std::move(base), span);
}

std::optional<int64_t> SharedLayout::element_at(int64_t offset) const {
  const std::vector<int64_t> elements = preimages(base_, swizzle_(offset));
  if (elements.empty()) return std::nullopt;
  return elements.front();
}

namespace {

SharedLayout conflict_free(const Shape& shape, int64_t element_bits, bool in_narrow_panels) {
  const int64_t length = row_length(shape), bits = length * element_bits;
  if (bits < 128 || volume(shape) == length) return SharedLayout::linear(shape, element_bits);
  for (SwizzleSpan span : {SwizzleSpan::bytes_128, SwizzleSpan::bytes_64, SwizzleSpan::bytes_32}) {
    if (!in_narrow_panels && span != SwizzleSpan::bytes_128 && bits != int64_t(span) * 8) continue;
    if (auto swizzled = SharedLayout::swizzled(shape, element_bits, span)) return *std::move(swizzled);
  }
  const int64_t pieces = (bits + 127) / 128 | 1;
  return SharedLayout::padded(shape, element_bits, pieces * 128 / element_bits - length);
}

}  // namespace

SharedLayout conflict_free_layout(const Shape& shape, int64_t element_bits) {
  return conflict_free(shape, element_bits, true);
}

SharedLayout conflict_free_rows(const Shape& shape, int64_t element_bits) {
  return conflict_free(shape, element_bits, false);
}

}  // namespace tilepilot::layout
