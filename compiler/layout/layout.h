// Layouts: functions from integers to integers that are sums of digits times strides. What lies where in a tile, which
// thread holds what and in which order a loop runs are all such functions, so one algebra (algebra.h) serves them all.
//
// Definition. A mode e:d is the function c -> c * d on [0, e). A layout is a sequence of modes (e0, e1, ...):(d0, d1,
// ...). It takes an index i of [0, e0 * e1 * ...), writes it in the mixed radix of its extents, first digit fastest,
//   i = c0 + e0 * (c1 + e1 * (c2 + ...)),   0 <= ck < ek,
// and gives c0 * d0 + c1 * d1 + c2 * d2 + ... The empty sequence is the function 0 -> 0. Strides are not negative; a
// stride of 0 repeats the same values.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::layout {

struct Mode {
  int64_t extent = 1;
  int64_t stride = 0;

  friend bool operator==(const Mode&, const Mode&) = default;
};

class Layout {
 public:
  Layout() = default;
  // @pre extents are at least 1, strides at least 0; size, cosize and each extent * stride fit 64 bits
  explicit Layout(std::vector<Mode> modes);
  Layout(std::initializer_list<Mode> modes) : Layout(std::vector<Mode>(modes)) {}
  // None if the condition does not hold.
  static std::optional<Layout> checked(std::vector<Mode> modes);

  const std::vector<Mode>& modes() const { return modes_; }
  // The number of indices.
  int64_t size() const;
  // One more than the largest value.
  int64_t cosize() const;
  // @pre 0 <= index < size()
  int64_t operator()(int64_t index) const;

  // Equal in writing; equal_functions() compares what they do.
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<Mode> modes_;
};

// The digits of `index`, one a mode. @post layout(index) == the sum of digit * stride
std::vector<int64_t> digits(const Layout& layout, int64_t index);

// All indices with that value, ascending.
// @post i is one of them if and only if layout(i) == value
std::vector<int64_t> preimages(const Layout& layout, int64_t value);

// The fewest modes that are the same function: extents of 1 go, and e:d followed by f:(e*d) becomes (e*f):d.
// @post coalesce(a)(i) == a(i) for each i of [0, size(a))
// @post coalesce(a) == coalesce(b) if and only if a and b have the same size and the same values
//   (the first extent is how long the values run on as multiples of the first one: the values alone decide it)
Layout coalesce(const Layout& layout);

// The same size and the same values.
bool equal_functions(const Layout& a, const Layout& b);

// The modes of both. @post concatenated(a, b)(i + size(a) * j) == a(i) + b(j)
Layout concatenated(const Layout& a, const Layout& b);

// No value twice.
bool is_injective(const Layout& layout);
// Each value of [0, count) once.
// @post equal to: size == count, cosize == count and injective
bool is_bijective(const Layout& layout, int64_t count);

// `(4,8):(1,16)`, one mode without brackets: `4:1`; the empty layout: `1:0`.
std::string to_text(const Layout& layout);
// Reads that form. @post read_layout(to_text(a)) is a, up to how its modes of extent 1 are written
std::optional<Layout> read_layout(std::string_view text);

}  // namespace tilepilot::layout
