// How fragments meet shared memory: vectors and wavefronts.
#include "compiler/layout/access.h"

#include <gmock/gmock.h>

#include <set>

#include "compiler/layout/partition.h"
#include "tests/layout/atom_named.h"
#include "tests/layout/random_layouts.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

TEST(Access, TakesVectorsThatMemoryAllows) {
  const Fragment tile = partition({64, 64}, {.threads = 128, .vector = 8});
  EXPECT_EQ(vector_length(tile, SharedLayout::linear({64, 64}, 16)), 8);
  EXPECT_EQ(vector_length(tile, SharedLayout::linear({64, 64}, 32)), 4);  // 16 bytes are the most
  EXPECT_EQ(vector_length(tile, conflict_free_layout({64, 64}, 16)), 8);
  EXPECT_EQ(vector_length(tile, SharedLayout::padded({64, 64}, 16, 4)), 4);  // rows begin at multiples of 4
  EXPECT_EQ(vector_length(tile, SharedLayout::padded({64, 64}, 16, 1)), 1);
  EXPECT_EQ(vector_length(partition({64, 64}, {.threads = 128, .vector = 2}), SharedLayout::linear({64, 64}, 16)), 2);
  EXPECT_EQ(vector_length(partition_rows({4, 20}, {.threads = 8, .vector = 4}), SharedLayout::linear({4, 20}, 16)), 4);
}

TEST(Access, OfPiecesInOrderIsAsFastAsMemory) {
  const Fragment tile = partition({64, 64}, {.threads = 128, .vector = 8});
  EXPECT_EQ(wavefronts(tile, SharedLayout::linear({64, 64}, 16)), 64);
  EXPECT_EQ(wavefronts(tile, conflict_free_layout({64, 64}, 16)), 64);
}

// Lanes of an operand go down eight rows: linear rows of 128 bytes put them all on the same banks.
TEST(Access, OfOperandsNeedsTheSwizzle) {
  const Fragment operand = a_fragment(testing::atom_named("mma.sync.m16n8k32", "s8 u8"));
  const auto with_padding = [](int64_t padding) { return SharedLayout::padded({16, 32}, 8, padding); };
  EXPECT_EQ(vector_length(operand, with_padding(96)), 4);
  EXPECT_EQ(wavefronts(operand, with_padding(96)), 4 * 8);
  EXPECT_EQ(wavefronts(operand, with_padding(96 + 16)), 4);
  EXPECT_EQ(wavefronts(operand, SharedLayout::swizzled({16, 32}, 8, SwizzleSpan::bytes_32).value()), 4);
}

TEST(Access, NeverBreaksAVector) {
  testing::RandomLayouts random(61);
  std::set<int64_t> lengths;
  for (int round = 0; round < rounds(300); ++round) {
    const Shape shape = {random.pick(1, 6), random.pick(1, 6) * (int64_t{1} << random.pick(0, 4))};
    const Fragment fragment = random.pick(0, 1)
                                  ? partition(shape, {random.pick(1, 40), int64_t{1} << random.pick(0, 4)})
                                  : Fragment(shape, Layout{{shape[0], 1}}, Layout{{shape[1], shape[0]}});
    const SharedLayout memory = SharedLayout::padded(shape, 16, random.pick(0, 8));
    const int64_t length = vector_length(fragment, memory);
    lengths.insert(length);
    for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
      for (int64_t reg = 0; reg < fragment.register_count(); ++reg) {
        const auto first = fragment.element({thread, reg / length * length}), here = fragment.element({thread, reg});
        ASSERT_EQ(first.has_value(), here.has_value());
        if (!first) continue;
        ASSERT_EQ(memory.offset(*first) % length, 0);
        ASSERT_EQ(memory.offset(*here), memory.offset(*first) + reg % length);
      }
    }
  }
  EXPECT_GE(lengths.size(), 3U);
}

}  // namespace
}  // namespace tilepilot::layout
