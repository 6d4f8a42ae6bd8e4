// Conversions between fragments within warps, as shuffles that are the same for all warps.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/layout/fragment.h"

namespace tilepilot::layout {

// A function of the lane that is linear over GF(2): `base` xor the columns of the bits that are set in the lane. What
// tensor-core fragments and partitions by powers of two ask of each other has this form (Zhou et al., "Linear Layouts",
// 2025, section 4).
struct LaneFunction {
  int64_t base = 0;
  std::array<int64_t, 5> columns = {};

  int64_t operator()(int64_t lane) const;
  bool is_identity() const { return *this == LaneFunction{0, {1, 2, 4, 8, 16}}; }
  friend bool operator==(const LaneFunction&, const LaneFunction&) = default;
};
// The function with these values, -1 where any will do; none if none has them.
std::optional<LaneFunction> lane_function(const std::array<int64_t, kWarpSize>& values);

// Where a word, `unit` neighbouring registers, of the wanted fragment comes from: word `word(lane)` of lane
// `lane(lane)` of the same warp. `words`: the values of `word`, each once.
struct WordMove {
  LaneFunction lane, word;
  std::vector<int64_t> words;
};
struct WarpMoves {
  int64_t unit = 1;
  std::vector<WordMove> words;
  // Of each thread: a shuffle takes one word from one lane.
  int64_t shuffles() const;
};

// `most`: the most elements that fit a word, a power of two; the most that move together are taken.
// @pre both have the same shape, and `from` is complete
// @post for each register r of each thread of `to` that holds an element, with the move of word r / unit:
//   from.element({thread / 32 * 32 + lane(thread % 32), word(thread % 32) * unit + r % unit}) is that element
// @post each thread of `from` holds elements in all registers of the words that any lane asks for
// @post none where elements cross warps, warps differ or no such functions are found
std::optional<WarpMoves> warp_moves(const Fragment& from, const Fragment& to, int64_t most);

}  // namespace tilepilot::layout
