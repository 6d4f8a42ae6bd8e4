// What conversions between fragments take, on chosen pairs and on random ones.
#include "compiler/layout/conversion.h"

#include <gmock/gmock.h>

#include "compiler/layout/partition.h"
#include "compiler/layout/reshape.h"
#include "tests/layout/atom_named.h"
#include "tests/layout/random_fragments.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

using testing::atom_named;
using testing::half_atom;
using testing::parsed;

// The cheapest kind, from the definitions of the kinds.
ConversionKind cheapest(const Fragment& from, const Fragment& to) {
  bool in_place = true, in_thread = true, in_warp = true;
  for (int64_t thread = 0; thread < to.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < to.register_count(); ++reg) {
      const auto element = to.element({thread, reg});
      if (!element) continue;
      bool same_place = false, same_thread = false, same_warp = false;
      for (Place owner : from.owners(*element)) {
        same_place = same_place || owner == Place{thread, reg};
        same_thread = same_thread || owner.thread == thread;
        same_warp = same_warp || owner.thread / 32 == thread / 32;
      }
      in_place = in_place && same_place;
      in_thread = in_thread && same_thread;
      in_warp = in_warp && same_warp;
    }
  }
  if (in_place) return ConversionKind::nothing;
  if (in_thread) return ConversionKind::registers;
  return in_warp ? ConversionKind::shuffles : ConversionKind::shared_memory;
}

void expect_right(const Fragment& from, const Fragment& to) {
  const Conversion found = conversion(from, to);
  ASSERT_EQ(found.kind, cheapest(from, to));
  ASSERT_EQ(int64_t(found.sources.size()), to.thread_count() * to.register_count());
  for (int64_t thread = 0; thread < to.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < to.register_count(); ++reg) {
      const Place source = found.sources[size_t(thread * to.register_count() + reg)];
      const auto element = to.element({thread, reg});
      ASSERT_EQ(source.thread >= 0, element.has_value());
      if (!element) continue;
      ASSERT_EQ(from.element(source), element);
      if (found.kind <= ConversionKind::registers) { ASSERT_EQ(source.thread, thread); }
      if (found.kind == ConversionKind::shuffles) { ASSERT_EQ(source.thread / 32, thread / 32); }
    }
  }
}

TEST(Conversion, NamesTheCheapestWay) {
  const Fragment tile = partition({64, 32}, {.threads = 128, .vector = 4});
  const auto kind = [&](const Fragment& to) { return conversion(tile, to).kind; };
  EXPECT_EQ(kind(tile), ConversionKind::nothing);
  EXPECT_EQ(kind(Fragment({64, 32}, parsed("128:4"), parsed("(2,2,4):(2,1,512)"))), ConversionKind::registers);
  EXPECT_EQ(kind(Fragment({64, 32}, parsed("(8,16):(1,32)"), parsed("(4,4):(8,512)"))), ConversionKind::shuffles);
  EXPECT_EQ(kind(Fragment({64, 32}, parsed("128:16"), parsed("16:1"))), ConversionKind::shared_memory);
}

TEST(Conversion, FromReplicasNeedsNothingToMove) {
  const Fragment everywhere({8}, parsed("32:0"), parsed("8:1"));
  EXPECT_EQ(conversion(everywhere, partition({8}, {.threads = 32, .vector = 1})).kind, ConversionKind::registers);
  EXPECT_EQ(conversion(partition({8}, {.threads = 32, .vector = 1}), everywhere).kind, ConversionKind::shuffles);
}

// Attention multiplies what a product gave: two accumulators beside each other are the next left operand as they are,
// if its elements have 16 bits; of 8 bits they have to cross lanes.
TEST(Conversion, FromAccumulatorsToTheNextOperand) {
  const Fragment accumulator = c_fragment(half_atom());
  const auto wide = [&](int64_t count) { return *repeated(accumulator, {.axis = 1, .count = count}); };
  EXPECT_EQ(conversion(wide(2), a_fragment(half_atom())).kind, ConversionKind::nothing);
  EXPECT_EQ(conversion(wide(4), a_fragment(atom_named("mma.sync.m16n8k32", "e4m3 e5m2"))).kind,
            ConversionKind::shuffles);
  EXPECT_EQ(conversion(wide(1), a_fragment(atom_named("mma.sync.m16n8k8", "tf32"))).kind, ConversionKind::shuffles);
  const Fragment group = c_fragment(with_n(atom_named("wgmma.mma_async.m64nNk16", "f16 bf16"), 16));
  EXPECT_EQ(conversion(group, a_fragment(atom_named("wgmma.mma_async.m64nNk16", "f16 bf16"))).kind,
            ConversionKind::nothing);
}

TEST(Conversion, IsRightForRandomPairs) {
  testing::RandomLayouts random(51);
  int kinds[4] = {};
  for (int round = 0; round < rounds(200); ++round) {
    const Fragment from = testing::random_fragment(random);
    const Workers workers{random.pick(1, 80), random.pick(1, 4)};
    std::vector<Mode> turned(from.registers().modes().rbegin(), from.registers().modes().rend());
    const Fragment reordered(from.shape(), from.threads(), Layout(std::move(turned)));
    for (const Fragment& to : {from, reordered, replicated(from, 2), partition(from.shape(), workers),
                               partition_rows(from.shape(), workers)}) {
      expect_right(from, to);
      expect_right(to, from);
      if (HasFatalFailure()) return;
      ++kinds[int(conversion(from, to).kind)];
    }
  }
  for (int count : kinds) EXPECT_GT(count, 0);
}

TEST(Conversion, HasNamesForItsKinds) {
  EXPECT_STREQ(to_text(ConversionKind::nothing), "nothing");
  EXPECT_STREQ(to_text(ConversionKind::registers), "registers");
  EXPECT_STREQ(to_text(ConversionKind::shuffles), "shuffles");
  EXPECT_STREQ(to_text(ConversionKind::shared_memory), "shared memory");
}

}  // namespace
}  // namespace tilepilot::layout
