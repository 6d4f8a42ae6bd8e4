// Which thread of a warp holds which element of the operands of `Mma`, and where (PTX ISA 9.7.15.5, "matrix
// fragments"). Lane l stands in row l / 4 of each 8 rows of A and C, in column l / 4 of B, and `word` elements of 32
// bits lie side by side along k.
#pragma once

#include <cstdint>

namespace tilepilot::ir {

inline constexpr int64_t kLanesOfWarp = 32, kLanesOfRow = 4;

// Among the four lanes of a row of A, or column of B; `item` of what that lane holds.
struct OperandPlace {
  int64_t lane_of_row, item;
};
// `half`: 0 for rows 0 to 7 of A, 1 for rows 8 to 15.
constexpr OperandPlace place_in_a(int64_t half, int64_t k, int64_t word) {
  return {k % (kLanesOfRow * word) / word, k % word + word * half + 2 * word * (k / (kLanesOfRow * word))};
}
constexpr OperandPlace place_in_b(int64_t k, int64_t word) {
  return {k % (kLanesOfRow * word) / word, k % word + word * (k / (kLanesOfRow * word))};
}
// Item i of C is in row l / 4 + 8 (i / 2) and column 2 (l % 4) + i % 2.
inline constexpr int64_t kItemsOfC = 4;

}  // namespace tilepilot::ir
