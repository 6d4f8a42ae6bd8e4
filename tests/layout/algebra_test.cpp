// The laws of compiler/layout/algebra.h, on every index of many layouts, and that what is refused does not exist.
#include "compiler/layout/algebra.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/layout/random_layouts.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

using testing::parsed;
using testing::RandomLayouts;
using testing::values_of;

std::string composed(std::string_view outer, std::string_view inner) {
  std::string why;
  const auto result = compose(parsed(outer), parsed(inner), &why);
  return result ? to_text(*result) : why;
}

TEST(Compose, GivesWhatCuteDescribes) {
  EXPECT_EQ(composed("(6,2):(8,2)", "(4,3):(3,1)"), "(2,2,3):(24,2,8)");
  EXPECT_EQ(composed("20:2", "(5,4):(4,1)"), "(5,4):(8,2)");
  EXPECT_EQ(composed("(10,2):(16,4)", "(5,4):(1,5)"), "(5,2,2):(16,80,4)");
}

TEST(Compose, NeedsNoDivisibilityWhereNothingCarries) {
  EXPECT_EQ(composed("(4,2):(1,100)", "2:3"), "2:3");
  EXPECT_EQ(composed("(4,4):(1,100)", "3:5"), "3:101");
  EXPECT_EQ(composed("(4,4):(1,100)", "(2,2):(1,2)"), "(2,2):(1,2)");
}

TEST(Compose, SaysWhatIsInTheWay) {
  EXPECT_EQ(composed("(4,2):(1,100)", "6:1"), "6:1 carries in (4,2):(1,100) after 4 steps, which do not divide 6");
  EXPECT_EQ(composed("(4,2):(1,100)", "(2,2):(3,1)"), "the modes of (2,2):(3,1) together carry in (4,2):(1,100)");
  EXPECT_EQ(composed("(4,2):(1,100)", "9:1"), "9:1 reaches 8, beyond the 8 indices of (4,2):(1,100)");
}

TEST(Compose, IsCompositionOnEveryIndex) {
  RandomLayouts random(11);
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Layout outer = random.pick(0, 1) ? random.any() : random.bijective(), inner = random.any(8);
    const auto result = compose(outer, inner);
    if (!result) continue;
    ++found;
    ASSERT_EQ(result->size(), inner.size());
    for (int64_t i = 0; i < inner.size(); ++i) {
      ASSERT_EQ((*result)(i), outer(inner(i))) << to_text(outer) << " o " << to_text(inner) << " at " << i;
    }
  }
  EXPECT_GT(found, rounds(2000));
}

TEST(Compose, KeepsPartsApart) {
  RandomLayouts random(12);
  for (int round = 0; round < rounds(5000); ++round) {
    const Layout outer = random.bijective(), first = random.any(8), second = random.any(8);
    const auto parts = compose(outer, {first, second});
    const auto whole = compose(outer, concatenated(first, second));
    ASSERT_EQ(parts.has_value(), whole.has_value());
    if (!parts) continue;
    ASSERT_EQ((*parts)[0].size(), first.size());
    ASSERT_EQ((*parts)[1].size(), second.size());
    ASSERT_EQ(concatenated((*parts)[0], (*parts)[1]), *whole);
  }
}

// Whether i -> outer(inner(i)) is a sum of layouts, one for each mode of `inner`.
bool is_layout_over_modes(const Layout& outer, const Layout& inner) {
  std::vector<std::vector<int64_t>> of_mode;
  for (const Mode& mode : inner.modes()) {
    std::vector<int64_t>& values = of_mode.emplace_back();
    for (int64_t digit = 0; digit < mode.extent; ++digit) values.push_back(outer(digit * mode.stride));
    if (!layout_of_values(values)) return false;
  }
  for (int64_t i = 0; i < inner.size(); ++i) {
    const std::vector<int64_t> at = digits(inner, i);
    int64_t sum = 0;
    for (size_t k = 0; k < at.size(); ++k) sum += of_mode[k][size_t(at[k])];
    if (sum != outer(inner(i))) return false;
  }
  return true;
}

// Strides with nothing in common, so that carries do not cancel out.
TEST(Compose, RefusesOnlyWhatIsNoLayout) {
  RandomLayouts random(13);
  int refused = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    std::vector<Mode> modes;
    for (int64_t count = random.pick(1, 3); count > 0; --count) {
      modes.push_back({random.pick(1, 8), random.pick(1000, 1000000000)});
    }
    const Layout outer(std::move(modes)), inner = random.any(random.pick(1, 12));
    if (inner.cosize() > outer.size()) continue;
    const bool exists = compose(outer, inner).has_value();
    ASSERT_EQ(exists, is_layout_over_modes(outer, inner)) << to_text(outer) << " o " << to_text(inner);
    refused += !exists;
  }
  EXPECT_GT(refused, rounds(1000));
}

TEST(Complement, GivesWhatCuteDescribes) {
  const auto of = [](std::string_view text, int64_t count) { return to_text(*complement(parsed(text), count)); };
  EXPECT_EQ(of("4:1", 24), "6:4");
  EXPECT_EQ(of("6:4", 24), "4:1");
  EXPECT_EQ(of("(4,6):(1,4)", 24), "1:0");
  EXPECT_EQ(of("4:2", 24), "(2,3):(1,8)");
  EXPECT_EQ(of("(2,4):(1,6)", 24), "3:2");
  EXPECT_EQ(of("(2,2):(1,6)", 24), "(3,2):(2,12)");
}

TEST(Complement, SaysWhatIsInTheWay) {
  std::string why;
  EXPECT_EQ(complement(parsed("4:2"), 20, &why), std::nullopt);
  EXPECT_EQ(why, "4:2 repeats after 8, which does not divide 20");
  EXPECT_EQ(complement(parsed("(2,2):(2,3)"), 24, &why), std::nullopt);
  EXPECT_EQ(why, "(2,2):(2,3) steps by 3, no multiple of the 4 that smaller strides cover");
}

// Whether shifted copies of the values give [0, count) once each. The least number missing can only be the start of
// the next copy, so there is nothing to search.
bool tiles_interval(const Layout& layout, int64_t count) {
  const std::vector<int64_t> values = values_of(layout);
  std::vector<bool> covered(size_t(count), false);
  for (int64_t start = 0; start < count; ++start) {
    if (covered[size_t(start)]) continue;
    for (int64_t value : values) {
      const int64_t at = start + value;
      if (at >= count || covered[size_t(at)]) return false;
      covered[size_t(at)] = true;
    }
  }
  return true;
}

TEST(Complement, CompletesTheIntervalWhereverThatIsPossible) {
  RandomLayouts random(14);
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Layout layout = random.any(8);
    const int64_t count = layout.size() * random.pick(1, 12);
    const auto rest = complement(layout, count);
    ASSERT_EQ(rest.has_value(), tiles_interval(layout, count)) << to_text(layout) << " to " << count;
    if (!rest) continue;
    ++found;
    ASSERT_TRUE(is_bijective(concatenated(layout, *rest), count)) << to_text(layout) << " to " << count;
    for (int64_t i = 1; i < rest->size(); ++i) ASSERT_LT((*rest)(i - 1), (*rest)(i));
  }
  EXPECT_GT(found, rounds(1000));
}

TEST(Complement, ExistsForMultiplesOfThePeriod) {
  RandomLayouts random(15);
  for (int round = 0; round < rounds(2000); ++round) {
    const Layout layout = random.any(8);
    const auto period = layout::period(layout);
    for (int64_t count = 1; count < 200; ++count) {
      ASSERT_EQ(complement(layout, count).has_value(), period && count % *period == 0) << to_text(layout);
    }
  }
}

TEST(Inverse, IsTheInverseOfABijection) {
  RandomLayouts random(16);
  for (int round = 0; round < rounds(2000); ++round) {
    const Layout layout = random.bijective();
    const Layout right = right_inverse(layout), left = left_inverse(layout).value();
    ASSERT_EQ(right, left);
    ASSERT_EQ(right.size(), layout.size());
    for (int64_t i = 0; i < layout.size(); ++i) {
      ASSERT_EQ(layout(right(i)), i);
      ASSERT_EQ(right(layout(i)), i);
    }
  }
}

TEST(Inverse, FromTheRightReachesAsFarAsValuesFollowEachOther) {
  RandomLayouts random(17);
  for (int round = 0; round < rounds(5000); ++round) {
    const Layout layout = random.any(8);
    const Layout inverse = right_inverse(layout);
    for (int64_t j = 0; j < inverse.size(); ++j) ASSERT_EQ(layout(inverse(j)), j) << to_text(layout);
    const std::vector<int64_t> values = values_of(layout);
    if (is_injective(layout)) {
      ASSERT_EQ(std::count(values.begin(), values.end(), inverse.size()), 0) << to_text(layout);
    }
  }
}

TEST(Inverse, FromTheLeftFindsEachIndex) {
  EXPECT_EQ(to_text(*left_inverse(parsed("(4,8):(1,16)"))), "(4,4,8):(1,32,4)");
  RandomLayouts random(18);
  int found = 0;
  for (int round = 0; round < rounds(5000); ++round) {
    const Layout layout = random.any(16);
    const auto inverse = left_inverse(layout);
    ASSERT_EQ(inverse.has_value(), period(layout).has_value());
    if (!inverse) continue;
    ++found;
    for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ((*inverse)(layout(i)), i) << to_text(layout);
  }
  EXPECT_GT(found, rounds(500));
}

TEST(Divide, CutsIntoTiles) {
  const auto divided = logical_divide(parsed("(4,2,3):(2,1,8)"), parsed("4:2"));
  EXPECT_EQ(to_text(divided->tile), "(2,2):(4,1)");
  EXPECT_EQ(to_text(divided->rest), "(2,3):(2,8)");
  RandomLayouts random(19);
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Layout layout = random.bijective(), tiler = random.any(6);
    const auto result = logical_divide(layout, tiler);
    if (!result) continue;
    ++found;
    const Layout rest = complement(tiler, layout.size()).value();
    std::vector<int64_t> all;
    for (int64_t j = 0; j < rest.size(); ++j) {
      for (int64_t i = 0; i < tiler.size(); ++i) {
        all.push_back(result->tile(i) + result->rest(j));
        ASSERT_EQ(all.back(), layout(tiler(i) + rest(j))) << to_text(layout) << " by " << to_text(tiler);
      }
    }
    std::vector<int64_t> values = values_of(layout);
    std::sort(all.begin(), all.end());
    std::sort(values.begin(), values.end());
    ASSERT_EQ(all, values);
  }
  EXPECT_GT(found, rounds(500));
}

TEST(Product, LaysATileOutAgain) {
  EXPECT_EQ(to_text(*logical_product(parsed("(2,2):(4,1)"), parsed("6:1"))), "(2,3):(2,8)");
  RandomLayouts random(20);
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Layout tile = random.any(8), order = random.any(6);
    const auto copies = logical_product(tile, order);
    if (!copies) continue;
    ++found;
    ASSERT_EQ(copies->size(), order.size());
    const Layout room = complement(tile, *period(tile) * order.cosize()).value();
    for (int64_t j = 0; j < order.size(); ++j) ASSERT_EQ((*copies)(j), room(order(j)));
    if (is_injective(order)) {
      ASSERT_TRUE(is_injective(concatenated(tile, *copies))) << to_text(tile) << " x " << to_text(order);
    }
  }
  EXPECT_GT(found, rounds(500));
}

// Tries all ways to write the size as a product.
bool some_layout_has(const std::vector<int64_t>& values, std::vector<Mode> modes, int64_t weight) {
  const int64_t size = int64_t(values.size());
  if (weight == size) return values_of(Layout(std::move(modes))) == values;
  for (int64_t extent = 2; weight * extent <= size; ++extent) {
    if (size % (weight * extent) != 0) continue;
    std::vector<Mode> more = modes;
    more.push_back({extent, values[size_t(weight)]});
    if (some_layout_has(values, std::move(more), weight * extent)) return true;
  }
  return false;
}

TEST(LayoutOfValues, RecognisesExactlyTheLayouts) {
  EXPECT_EQ(layout_of_values({}), std::nullopt);
  RandomLayouts random(21);
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    std::vector<int64_t> values = values_of(random.any(4));
    if (values.size() > 60) continue;
    for (int64_t changes = random.pick(0, 2); changes > 0; --changes) {
      values[size_t(random.pick(0, int64_t(values.size()) - 1))] += random.pick(-1, 1);
    }
    const auto layout = layout_of_values(values);
    const bool negative = *std::min_element(values.begin(), values.end()) < 0;
    ASSERT_EQ(layout.has_value(), !negative && some_layout_has(values, {}, 1)) << ::testing::PrintToString(values);
    if (!layout) continue;
    ++found;
    ASSERT_EQ(values_of(*layout), values);
    ASSERT_EQ(coalesce(*layout), *layout);
  }
  EXPECT_GT(found, rounds(1000));
}

TEST(LayoutOfValues, SurvivesValuesThatNoSumReaches) {
  const int64_t huge = INT64_MAX;
  EXPECT_EQ(layout_of_values(std::vector<int64_t>{0, huge, huge, 5}), std::nullopt);
  EXPECT_EQ(layout_of_values(std::vector<int64_t>{0, huge / 2 + 1, huge, huge}), std::nullopt);
}

}  // namespace
}  // namespace tilepilot::layout
