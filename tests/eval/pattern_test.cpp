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

TEST(Pattern, BothEnds) {
  auto wrong = report([](auto, int64_t column, double right) { return column < 1 || column >= 18 ? 0 : right; });
  EXPECT_EQ(wrong.pattern, "only the first column and the last 2 columns, all zeros");
}

TEST(Pattern, EdgesOfTiles) {
  auto last = report([](auto, int64_t column, double right) { return column % 5 >= 3 ? 0 : right; });
  EXPECT_EQ(last.pattern, "only the last 2 of every 5 columns, all zeros");
  auto first = report([](int64_t row, auto, double right) { return row % 6 < 2 ? 0 : right; });
  EXPECT_EQ(first.pattern, "only the first 2 of every 6 rows, all zeros");
  auto inside =
      report([](auto, int64_t column, double right) { return column % 10 == 4 || column % 10 == 5 ? 0 : right; });
  EXPECT_EQ(inside.pattern, "only numbers 4 to 5, counted from 0, of every 10 columns, all zeros");
  // Not in every tile.
  auto some = report([](auto, int64_t column, double right) {
    return column == 3 || column == 4 || column == 8 || column == 9 ? 0 : right;
  });
  EXPECT_EQ(some.pattern, "20 % of the elements, scattered, all zeros");
}

TEST(Pattern, Halo) {
  auto wrong = report([](int64_t row, int64_t column, double right) {
    return row == 0 || column == 0 || row == kRows - 1 || column == kColumns - 1 ? 0 : right;
  });
  EXPECT_EQ(wrong.pattern, "only at the border of rows and columns, within 1 element, all zeros");
}

// Several planes of 8 x 8.
WrongValues report_of_planes(const std::function<bool(int64_t row, int64_t column)>& is_wrong) {
  std::vector<double> actual, expected, bound;
  for (int64_t i = 0; i < 3 * 8 * 8; ++i) {
    expected.push_back(1 + 0.37 * static_cast<double>(i % 11));
    actual.push_back(is_wrong(i / 8 % 8, i % 8) ? 0 : expected.back());
    bound.push_back(1e-6);
  }
  return describe_wrong_values({actual, expected, bound, {3, 8, 8}});
}

TEST(Pattern, ForgottenMask) {
  EXPECT_EQ(report_of_planes([](int64_t row, int64_t column) { return column > row; }).pattern,
            "only above the diagonal, where the column is beyond the row, all zeros");
  EXPECT_EQ(report_of_planes([](int64_t row, int64_t column) { return column < row; }).pattern,
            "only below the diagonal, where the row is beyond the column, all zeros");
  // Above it, too, but for another reason.
  EXPECT_EQ(report_of_planes([](int64_t row, int64_t column) { return column > row && column >= 6; }).pattern,
            "only parts of the last 2 columns of parts of the first 7 rows, all zeros");
}

// Four axes: batch, channel or head, row, column.
WrongValues report_of_images(const std::function<bool(int64_t batch, int64_t channel)>& is_wrong) {
  std::vector<double> actual, expected, bound;
  for (int64_t i = 0; i < 2 * 6 * 4 * 5; ++i) {
    expected.push_back(1 + 0.37 * static_cast<double>(i % 11));
    actual.push_back(is_wrong(i / 120, i / 20 % 6) ? 0 : expected.back());
    bound.push_back(1e-6);
  }
  return describe_wrong_values({actual, expected, bound, {2, 6, 4, 5}});
}

TEST(Pattern, ChannelsAndHeads) {
  EXPECT_EQ(report_of_images([](auto, int64_t channel) { return channel == 3; }).pattern,
            "only index 3 of axis 1 (channel or head), all zeros");
  EXPECT_EQ(report_of_images([](auto, int64_t channel) { return channel >= 2 && channel < 5; }).pattern,
            "only indices 2 to 4 of axis 1 (channel or head), all zeros");
  EXPECT_EQ(
      report_of_images([](int64_t batch, int64_t channel) { return batch == 1 && channel >= 4; }).pattern,
      "only parts of the last 2 indices of axis 1 (channel or head) of parts of the last index of axis 0, all zeros");
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
