// The laws of compiler/layout/layout.h, on every index of many layouts.
#include "compiler/layout/layout.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/layout/random_layouts.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

using testing::parsed;
using testing::values_of;

std::vector<Layout> many_layouts() {
  std::vector<Layout> layouts = testing::hand_chosen();
  testing::RandomLayouts random(1);
  for (int round = 0; round < rounds(2000); ++round) {
    layouts.push_back(random.any());
    layouts.push_back(random.bijective());
  }
  return layouts;
}

TEST(Layout, IsTheSumOfDigitsTimesStrides) {
  const Layout layout = parsed("(4,8):(1,16)");
  EXPECT_EQ(layout.size(), 32);
  EXPECT_EQ(layout.cosize(), 116);
  EXPECT_EQ(layout(5), 17);
  EXPECT_EQ(layout(31), 115);
  EXPECT_EQ(Layout()(0), 0);
  for (const Layout& layout : many_layouts()) {
    const std::vector<int64_t> values = values_of(layout);
    ASSERT_EQ(layout.size(), int64_t(values.size()));
    ASSERT_EQ(layout.cosize(), *std::max_element(values.begin(), values.end()) + 1);
    for (int64_t i = 0; i < layout.size(); ++i) {
      ASSERT_EQ(layout(i), values[size_t(i)]) << to_text(layout) << " at " << i;
      const std::vector<int64_t> digits = layout::digits(layout, i);
      int64_t sum = 0;
      for (size_t k = 0; k < digits.size(); ++k) sum += digits[k] * layout.modes()[k].stride;
      ASSERT_EQ(sum, values[size_t(i)]);
    }
  }
}

TEST(Layout, FindsAllPreimages) {
  for (const Layout& layout : many_layouts()) {
    const std::vector<int64_t> values = values_of(layout);
    for (int64_t value = -1; value <= layout.cosize(); ++value) {
      std::vector<int64_t> expected;
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] == value) expected.push_back(int64_t(i));
      }
      ASSERT_EQ(preimages(layout, value), expected) << to_text(layout) << " at " << value;
    }
  }
}

TEST(Layout, CoalescesToOneFormAFunction) {
  EXPECT_EQ(to_text(coalesce(parsed("(2,1,6):(1,6,2)"))), "12:1");
  EXPECT_EQ(to_text(coalesce(parsed("(2,3,4):(0,0,0)"))), "24:0");
  EXPECT_EQ(to_text(coalesce(parsed("(4,8):(8,1)"))), "(4,8):(8,1)");
  std::vector<Layout> layouts;
  std::vector<std::vector<int64_t>> values;
  testing::RandomLayouts random(2);
  for (int round = 0; round < rounds(400); ++round) {
    layouts.push_back(random.any(3));
    values.push_back(values_of(layouts.back()));
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    ASSERT_EQ(values_of(coalesce(layouts[i])), values[i]) << to_text(layouts[i]);
    for (size_t j = 0; j < i; ++j) {
      ASSERT_EQ(equal_functions(layouts[i], layouts[j]), values[i] == values[j])
          << to_text(layouts[i]) << " and " << to_text(layouts[j]);
    }
  }
}

TEST(Layout, ConcatenatesToSums) {
  testing::RandomLayouts random(3);
  for (int round = 0; round < rounds(300); ++round) {
    const Layout a = random.any(), b = random.any();
    const Layout both = concatenated(a, b);
    ASSERT_EQ(both.size(), a.size() * b.size());
    for (int64_t i = 0; i < both.size(); ++i) ASSERT_EQ(both(i), a(i % a.size()) + b(i / a.size()));
  }
}

TEST(Layout, KnowsInjectionsAndBijections) {
  int injective = 0, bijective = 0;
  for (const Layout& layout : many_layouts()) {
    std::vector<int64_t> values = values_of(layout);
    std::sort(values.begin(), values.end());
    const bool once = std::adjacent_find(values.begin(), values.end()) == values.end();
    ASSERT_EQ(is_injective(layout), once) << to_text(layout);
    for (int64_t count : {layout.size(), layout.cosize(), layout.size() + 1}) {
      const bool each = once && layout.size() == count && layout.cosize() == count;
      ASSERT_EQ(is_bijective(layout, count), each) << to_text(layout) << " onto " << count;
      bijective += each;
    }
    injective += once;
  }
  EXPECT_GT(injective, 100);
  EXPECT_GT(bijective, 100);
}

TEST(Layout, ReadsWhatItPrints) {
  EXPECT_EQ(to_text(Layout()), "1:0");
  EXPECT_EQ(to_text(Layout{{4, 1}}), "4:1");
  EXPECT_EQ(to_text(Layout{{4, 1}, {8, 16}}), "(4,8):(1,16)");
  EXPECT_EQ(parsed("(4):(1)"), parsed("4:1"));
  for (const Layout& layout : many_layouts()) {
    const std::string text = to_text(layout);
    ASSERT_EQ(to_text(parsed(text)), text);
    ASSERT_TRUE(equal_functions(parsed(text), layout));
  }
}

TEST(Layout, RefusesWhatIsNoLayout) {
  for (std::string_view text : {"",
                                "4",
                                "4:",
                                ":4",
                                "4:1:2",
                                "(4,8):1",
                                "(4,8):(1)",
                                "()",
                                "():()",
                                "(4,8:(1,2)",
                                "(4,8)(1,2)",
                                "(4 ,8):(1,2)",
                                "4:1 ",
                                "0:1",
                                "-4:1",
                                "4:-1",
                                "a:b",
                                "(4,):(1,)",
                                "99999999999999999999:1",
                                "(4294967296,4294967296):(1,1)",
                                "4294967296:4294967296",
                                "2:9223372036854775807"}) {
    EXPECT_EQ(read_layout(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tilepilot::layout
