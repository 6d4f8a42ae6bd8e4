// Layouts to check laws on: some chosen by hand, many random, with extents that are no powers of two.
#pragma once

#include <random>
#include <string_view>
#include <vector>

#include "compiler/layout/layout.h"

namespace tilepilot::layout::testing {

inline Layout parsed(std::string_view text) { return read_layout(text).value(); }

inline std::vector<Layout> hand_chosen() {
  std::vector<Layout> layouts;
  for (std::string_view text : {"1:0",
                                "1:5",
                                "8:1",
                                "8:0",
                                "7:3",
                                "(4,8):(1,16)",
                                "(4,8):(8,1)",
                                "(2,2,2):(4,2,1)",
                                "(3,5):(5,1)",
                                "(4,1,6):(2,9,0)",
                                "(2,3,4):(0,1,3)",
                                "(6,2):(8,2)",
                                "(4,6):(1,4)",
                                "(2,4):(1,6)",
                                "(2,2):(1,6)",
                                "(3,2):(2,3)",
                                "(2,2):(1,1)",
                                "(4,8,2,2):(2,16,1,128)",
                                "(10,2):(16,4)",
                                "(5,7):(1,9)"}) {
    layouts.push_back(parsed(text));
  }
  return layouts;
}

// All values, by the definition: each mode repeats what the faster ones give.
inline std::vector<int64_t> values_of(const Layout& layout) {
  std::vector<int64_t> values = {0};
  for (const Mode& mode : layout.modes()) {
    const std::vector<int64_t> inner = values;
    values.clear();
    for (int64_t digit = 0; digit < mode.extent; ++digit) {
      for (int64_t value : inner) values.push_back(value + digit * mode.stride);
    }
  }
  return values;
}

class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}

  // Both ends included.
  int64_t pick(int64_t first, int64_t last) { return first + int64_t(random_() % uint64_t(last - first + 1)); }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[size_t(pick(0, int64_t(i) - 1))]);
  }

  Layout any(int64_t largest_stride = 20) {
    std::vector<Mode> modes;
    for (int64_t count = pick(0, 4); count > 0; --count) modes.push_back({pick(1, 6), pick(0, largest_stride)});
    return Layout(std::move(modes));
  }

  // Each value up to the size once.
  Layout bijective() {
    std::vector<Mode> modes = factors(pick(1, 300), 1);
    shuffle(modes);
    return Layout(std::move(modes));
  }

  // Modes that together run through [0, count) in steps of `stride`.
  std::vector<Mode> factors(int64_t count, int64_t stride) {
    std::vector<Mode> modes;
    while (count > 1) {
      int64_t factor = pick(2, count);
      while (count % factor != 0) factor = factor == count ? 2 : factor + 1;
      modes.push_back({factor, stride});
      stride *= factor;
      count /= factor;
    }
    return modes;
  }

 private:
  std::mt19937 random_;
};

}  // namespace tilepilot::layout::testing
