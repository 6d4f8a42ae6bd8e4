#include "eval/pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tilepilot::eval {
namespace {

constexpr int64_t kRows = 12, kColumns = 20;

// The report on a 12 x 20 output where `change` was applied.
WrongValues report(const std::function<double(int64_t row, int64_t column, double right)>& change) {
  std::vector<double> actual, expected, bound;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      double right = 1 + 0.37 * static_cast<double>((row * 7 + column * 3) % 11);
      expected.push_back(right);
      actual.push_back(change(row, column, right));
      bound.push_back(1e-6);
    }
  }
  return describe_wrong_values({actual, expected, bound, {kRows, kColumns}});
}

TEST(Pattern, NothingWrong) {
  auto wrong = report([](auto, auto, double right) { return right; });
  EXPECT_EQ(wrong.count, 0);
  EXPECT_EQ(wrong.pattern, "");
}

TEST(Pattern, LastColumns) {
  auto wrong = report([](auto, int64_t column, double right) { return column >= 16 ? 0 : right; });
  EXPECT_EQ(wrong.pattern, "only the last 4 columns, all zeros");
  EXPECT_EQ(wrong.count, 48);
}

TEST(Pattern, LastRow) {
  auto wrong = report([](int64_t row, auto, double right) { return row == 11 ? NAN : right; });
  EXPECT_EQ(wrong.pattern, "only the last row, NaN");
}

TEST(Pattern, MiddleRows) {
  auto wrong = report([](int64_t row, auto, double right) { return row >= 4 && row < 8 ? right * 3 : right; });
  EXPECT_EQ(wrong.pattern, "only rows 4 to 7, ratio about 3");
}

TEST(Pattern, CornerTile) {
  auto wrong = report([](int64_t row, int64_t column, double right) { return row < 4 && column >= 12 ? 5.5 : right; });
  EXPECT_EQ(wrong.pattern, "only parts of the last 8 columns of parts of the first 4 rows, all equal to 5.5");
}

TEST(Pattern, EveryElementByARatio) {
  auto wrong = report([](auto, auto, double right) { return 2 * right; });
  EXPECT_EQ(wrong.pattern, "every element, ratio about 2");
}

TEST(Pattern, EveryElementByAnOffset) {
  auto wrong = report([](auto, auto, double right) { return right + 0.25; });
  EXPECT_EQ(wrong.pattern, "every element, off by about 0.25");
}

TEST(Pattern, NearlyRight) {
  auto wrong = report(
      [](int64_t row, int64_t column, double right) { return right * (1 + ((row + column) % 2 ? 1e-3 : -1e-3)); });
  EXPECT_EQ(wrong.pattern, "every element, within 0.001 of right, relative: rounding, or lower precision inside");
}

TEST(Pattern, EveryOtherColumn) {
  auto wrong = report([](auto, int64_t column, double right) { return column % 2 ? -right * right : right; });
  EXPECT_EQ(wrong.pattern, "only every 2nd column, from 1 on");
}

TEST(Pattern, OneElement) {
  auto wrong = report([](int64_t row, int64_t column, double right) { return row == 3 && column == 17 ? 9 : right; });
  EXPECT_EQ(wrong.where, "[3, 17]");
  EXPECT_EQ(wrong.count, 1);
}

TEST(Pattern, WorstIsTheLargestError) {
  auto wrong = report([](int64_t row, int64_t column, double right) {
    return right + (row == 2 && column == 5 ? 10 : row == 8 && column == 1 ? 3 : 0);
  });
  EXPECT_EQ(wrong.where, "[2, 5]");
}

TEST(Pattern, EqualInfinitiesAreRight) {
  std::vector<double> values = {INFINITY, -INFINITY, 1}, bound = {0, 0, 0};
  EXPECT_EQ(describe_wrong_values({values, values, bound, {3}}).count, 0);
}

TEST(Pattern, Scalars) {
  std::vector<double> actual = {2}, expected = {1}, bound = {0.1};
  auto wrong = describe_wrong_values({actual, expected, bound, {}});
  EXPECT_EQ(wrong.pattern, "every element");
  EXPECT_EQ(wrong.where, "[]");
}

}  // namespace
}  // namespace tilepilot::eval
