// Where the elements of a tile lie in shared memory: row-major, with padded rows, or swizzled. An offset is the swizzle
// of a layout of the element's row-major index.
//
// A swizzled tile whose rows are longer than the swizzle spans is cut into panels, each as wide as the span, one after
// the other: the form in which TMA fills it, a box a panel, and in which ldmatrix meets no conflict.
#pragma once

#include <optional>
#include <string>

#include "compiler/layout/shape.h"
#include "compiler/layout/swizzle.h"

namespace tilepilot::layout {

class SharedLayout {
 public:
  // Row-major. @pre element_bits is a power of two from 1 to 128 (of all forms)
  static SharedLayout linear(Shape shape, int64_t element_bits);
  // Row-major, with `padding` elements free after each row.
  static SharedLayout padded(Shape shape, int64_t element_bits, int64_t padding);
  // None if rows are no multiple of the span. @pre span is not none
  static std::optional<SharedLayout> swizzled(Shape shape, int64_t element_bits, SwizzleSpan span,
                                              std::string* why = nullptr);

  const Shape& shape() const { return shape_; }
  int64_t element_bits() const { return element_bits_; }
  SwizzleSpan span() const { return span_; }
  // From row-major indices to offsets before the swizzle.
  const Layout& base() const { return base_; }

  // The offset, in elements, of the element with that row-major index; no two have the same.
  int64_t offset(int64_t element) const { return swizzle_(base_(element)); }
  // @post element_at(offset(e)) == e; no element lies in padding
  std::optional<int64_t> element_at(int64_t offset) const;

  // From the first offset to the last, padding between them included. @post offset(e) < size()
  int64_t size() const { return base_.cosize(); }
  int64_t bytes() const { return (size() * element_bits_ + 7) / 8; }
  // What the address of the first element must be a multiple of, in bytes.
  int64_t alignment() const { return layout::alignment(span_); }

 private:
  SharedLayout(Shape shape, int64_t element_bits, Layout base, SwizzleSpan span);

  Shape shape_;
  int64_t element_bits_;
  Layout base_;
  SwizzleSpan span_;
  Swizzle swizzle_;
};

// The layout in which eight rows, read 16 bytes each at the same place (ldmatrix, wgmma), and rows read through in 16
// bytes a thread, both meet no bank conflict: the widest swizzle that divides the rows, else an odd number of 16-byte
// pieces a row. Tiles of one row, or with rows shorter than 16 bytes, stay linear.
SharedLayout conflict_free_layout(const Shape& shape, int64_t element_bits);

// The same where neither TMA nor wgmma has to know the form: rows that several narrow panels would cut are
// padded instead, so that 16-byte pieces that follow each other in a row meet no conflict either.
SharedLayout conflict_free_rows(const Shape& shape, int64_t element_bits);

}  // namespace tilepilot::layout
