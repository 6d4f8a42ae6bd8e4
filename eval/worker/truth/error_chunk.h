// What the scan of errors does with each element, in loops without branches over pairs of elements: the vector
// registers that every processor has. So the numbers are the same on all of them.
#pragma once

#include <cstdint>

namespace tilepilot::eval {

inline constexpr int64_t kErrorChunk = 1024;  // elements at a time: what is noted of each stays in the first cache

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
  bool nan = false, not_finite = false, specials_wrong = false;

  void add(const ErrorExtremes& other);
};

struct ErrorOperands {
  const double *value, *eager, *truth;
  double rms;
  const double* local;  // of each element, in place of `rms`
};

// Writes the squares of the scaled errors, zero where truth or eager is not finite.
void compare_elements(const ErrorOperands& operands, int64_t count, double* squares, ErrorExtremes& extremes);

// Writes the squares of the truth, zero where truth or eager is not finite; gives for how many elements both are.
int64_t square_elements(const double* eager, const double* truth, int64_t count, double* squares);

SliceSum sum_of(const double* squares, int64_t count);

}  // namespace tilepilot::eval
