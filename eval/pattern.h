// Names the pattern of wrong elements in an output, so that an author sees at once what kind of mistake it is: an edge
// tile, a missing scale, rows never written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilepilot::eval {

struct ValueReport {
  std::span<const double> actual;
  std::span<const double> expected;
  std::span<const double> bound;  // an element is wrong if |actual - expected| exceeds its bound, or is NaN
  std::vector<int64_t> shape;
};

struct WrongValues {
  int64_t count = 0;
  int64_t worst = -1;   // flat index of the largest error beyond its bound
  std::string where;    // "[3, 17]" of the worst
  std::string pattern;  // empty if nothing is wrong
};

WrongValues describe_wrong_values(const ValueReport& report);

// "[3, 17]" of a flat index, row-major.
std::string index_text(int64_t flat, const std::vector<int64_t>& shape);

}  // namespace tilepilot::eval
