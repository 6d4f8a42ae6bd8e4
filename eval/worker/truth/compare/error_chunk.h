// What the scan of errors does with each element, in loops without branches over pairs of elements: the vector
// registers that every processor has. So the numbers are the same on all of them.
#pragma once

#include <cstdint>

namespace tilepilot::eval {

inline constexpr int64_t kErrorChunk = 1024;  // elements at a time: what is noted of each stays in the first cache

// Smaller than that, no slice has a scale, and no element is lost: its roundings to float32 would be numbers below the
// least normal one, which functions flush to zero.
inline constexpr double kLeastScale = 0x1p-126 / 0x1p-23;
inline constexpr double kLostPart = 0.25;  // an element that is off by more of itself is lost

// Of the elements of a slice.
struct SliceSum {
  double squares = 0;
  int64_t not_zero = 0;

  void add(double more, int64_t elements) {
    squares += more;
    not_zero += elements;
  }
};

// Of the elements where truth and eager are finite, except `specials_wrong`. A NaN raises no maximum.
struct ErrorExtremes {
  double max = 0, local = 0, max_abs = 0, eager_max_abs = 0;
  double largest = 0;  // |truth| + rms
  double fill = 0;     // relative, of elements from the fill limit on
  // Of the scaled differences d and the truth by the same scale, u: sums of d u, u u, d and |u|.
  double along = 0, squares = 0, sum = 0, magnitudes = 0;
  int64_t lost = 0, sizeable = 0;  // off by more than a quarter of the truth; of so many elements
  bool nan = false, not_finite = false, specials_wrong = false;

  void add(const ErrorExtremes& other);
};

struct ErrorOperands {
  const double *value, *eager, *truth;
  double rms;
  const double* local;  // of each element, in place of `rms`
  double fill_limit;    // elements as large are fills
};

// Writes the squares of the scaled errors, zero where truth or eager is not finite.
void compare_elements(const ErrorOperands& operands, int64_t count, double* squares, ErrorExtremes& extremes);

struct SquaredElements {
  int64_t counted = 0, fills = 0;  // where truth and eager are finite; of these, as large as fills
  double largest = 0;              // of the others

  void add(const SquaredElements& other) {
    counted += other.counted;
    fills += other.fills;
    largest = largest < other.largest ? other.largest : largest;
  }
};
// Writes the squares of the truth, zero where truth or eager is not finite or a fill.
SquaredElements square_elements(const double* eager, const double* truth, double fill_limit, int64_t count,
                                double* squares);

SliceSum sum_of(const double* squares, int64_t count);

}  // namespace tilepilot::eval
