// What lanes of a warp hand over to each other, on chosen pairs of fragments and on random ones.
#include "compiler/layout/warp_moves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/layout/partition.h"
#include "compiler/layout/reshape.h"
#include "tests/layout/atom_named.h"
#include "tests/layout/random_fragments.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

using testing::atom_named;
using testing::parsed;

void expect_moved(const Fragment& from, const Fragment& to, const WarpMoves& moves) {
  ASSERT_EQ(static_cast<int64_t>(moves.words.size()) * moves.unit, to.register_count());
  for (const WordMove& move : moves.words)  // Somebody has written what lanes give.
    for (const int64_t word : move.words)
      for (int64_t thread = 0; thread < from.thread_count(); ++thread)
        for (int64_t k = 0; k < moves.unit; ++k) ASSERT_TRUE(from.element({thread, word * moves.unit + k}));
  for (int64_t thread = 0; thread < to.thread_count(); ++thread)
    for (int64_t reg = 0; reg < to.register_count(); ++reg) {
      const auto wanted = to.element({thread, reg});
      const WordMove& move = moves.words[static_cast<size_t>(reg / moves.unit)];
      const int64_t lane = thread % kWarpSize, word = move.word(lane);
      ASSERT_NE(std::find(move.words.begin(), move.words.end(), word), move.words.end());
      ASSERT_LT(word, from.register_count() / moves.unit);
      const Place source{thread / kWarpSize * kWarpSize + move.lane(lane), word * moves.unit + reg % moves.unit};
      if (wanted) { ASSERT_EQ(from.element(source), wanted); }
    }
}

// Whether some thread wants an element that no lane of its warp holds.
bool crosses_warps(const Fragment& from, const Fragment& to) {
  for (int64_t thread = 0; thread < to.thread_count(); ++thread)
    for (int64_t reg = 0; reg < to.register_count(); ++reg) {
      const auto element = to.element({thread, reg});
      if (!element) continue;
      const std::vector<Place> owners = from.owners(*element);
      const bool is_near = std::any_of(owners.begin(), owners.end(),
                                       [&](Place owner) { return owner.thread / kWarpSize == thread / kWarpSize; });
      if (!is_near) return true;
    }
  return false;
}

TEST(WarpMoves, FindsFunctionsThatAreLinear) {
  std::array<int64_t, kWarpSize> values;
  for (int64_t lane = 0; lane < kWarpSize; ++lane) values[static_cast<size_t>(lane)] = lane / 4 ^ lane % 2 * 17 ^ 5;
  const auto found = lane_function(values);
  ASSERT_TRUE(found);
  for (int64_t lane = 0; lane < kWarpSize; ++lane) EXPECT_EQ((*found)(lane), values[static_cast<size_t>(lane)]);
  values[3] ^= 1;
  EXPECT_FALSE(lane_function(values));
  values[3] = -1;
  ASSERT_TRUE(lane_function(values));
  EXPECT_EQ(*lane_function(values), *found);
}

// A place that nobody asks about is free, even that of lane 0.
TEST(WarpMoves, FindsFunctionsFromSomeOfTheirValues) {
  std::array<int64_t, kWarpSize> values;
  values.fill(-1);
  values[6] = 3;
  values[5] = 9;
  values[9] = 2;
  const auto found = lane_function(values);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)(6), 3);
  EXPECT_EQ((*found)(5), 9);
  EXPECT_EQ((*found)(9), 2);
  values[5 ^ 6 ^ 9] = 3 ^ 9 ^ 2 ^ 1;
  EXPECT_FALSE(lane_function(values));
}

// Sums of a product that are the next product's left operand, of 8 bits: pairs of columns become fours.
TEST(WarpMoves, FromAccumulatorsToTheNextOperand) {
  const Fragment sums = *repeated(c_fragment(atom_named("mma.sync.m16n8k32", "e4m3 e5m2")), {.axis = 1, .count = 4});
  const Fragment operand = a_fragment(atom_named("mma.sync.m16n8k32", "e4m3 e5m2"));
  const auto moves = warp_moves(sums, operand, 4);
  ASSERT_TRUE(moves);
  EXPECT_EQ(moves->unit, 2);
  EXPECT_EQ(moves->shuffles(), 16);  // 8 words from two places each
  expect_moved(sums, operand, *moves);
}

// Of 16 bits two accumulators beside each other are that operand as they are; tfloat32 has to cross lanes.
TEST(WarpMoves, FromAccumulatorsOfOtherWidths) {
  const Fragment sums = c_fragment(testing::half_atom());
  const auto halves = warp_moves(*repeated(sums, {.axis = 1, .count = 2}), a_fragment(testing::half_atom()), 2);
  ASSERT_TRUE(halves);
  EXPECT_EQ(halves->shuffles(), 0);
  const Fragment operand = a_fragment(atom_named("mma.sync.m16n8k8", "tf32"));
  const auto words = warp_moves(sums, operand, 1);
  ASSERT_TRUE(words);
  EXPECT_EQ(words->shuffles(), 8);
  expect_moved(sums, operand, *words);
}

TEST(WarpMoves, NotAcrossWarps) {
  const Fragment tile = partition({64, 32}, {.threads = 128, .vector = 4});
  EXPECT_FALSE(warp_moves(tile, Fragment({64, 32}, parsed("128:16"), parsed("16:1")), 4));
  const auto within = warp_moves(tile, Fragment({64, 32}, parsed("(8,16):(1,32)"), parsed("(4,4):(8,512)")), 4);
  ASSERT_TRUE(within);
  EXPECT_EQ(within->unit, 1);
}

TEST(WarpMoves, NothingIsShuffledThatStays) {
  const Fragment tile = partition({64, 32}, {.threads = 128, .vector = 4});
  const auto moves = warp_moves(tile, Fragment({64, 32}, parsed("128:4"), parsed("(2,2,4):(2,1,512)")), 4);
  ASSERT_TRUE(moves);
  EXPECT_EQ(moves->shuffles(), 0);
}

TEST(WarpMoves, AreRightForRandomPairs) {
  testing::RandomLayouts random(52);
  int found = 0, words = 0, none = 0;
  for (int round = 0; round < rounds(300); ++round) {
    const Fragment from = testing::random_fragment(random);
    const Workers workers{random.pick(1, 80), random.pick(1, 4)};
    for (const Fragment& to : {from, replicated(from, 2), partition(from.shape(), workers),
                               partition_rows(from.shape(), workers), testing::random_fragment(random)}) {
      if (to.shape() != from.shape()) continue;
      const auto moves = warp_moves(from, to, 4);
      if (crosses_warps(from, to)) { ASSERT_FALSE(moves); }
      ++(moves ? found : none);
      if (!moves) continue;
      words += moves->unit > 1;
      expect_moved(from, to, *moves);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(found, rounds(300) / 4);
  EXPECT_GT(words, 0);
  EXPECT_GT(none, 0);
}

}  // namespace
}  // namespace tilepilot::layout
