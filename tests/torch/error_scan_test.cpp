// The scan of errors against the formulas of docs/verification.md, element by element.
#include "eval/worker/truth/compare/error_scan.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilepilot::eval {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous().reshape({-1});
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

// Without `usual`.
ErrorScan plain_scan(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth,
                     const ErrorScale& scale) {
  const std::vector<double> values = numbers_of(value), eagers = numbers_of(eager), truths = numbers_of(truth);
  const auto columns = static_cast<size_t>(RowShape(truth.sizes()).columns);
  ErrorScan scan;
  double squares = 0, largest = 0, along = 0, shares = 0, sum = 0, sizes = 0;
  int64_t lost = 0, sizeable = 0;
  bool nan = false;
  for (size_t i = 0; i < truths.size(); ++i) {
    const double v = values[i], e = eagers[i], t = truths[i];
    if (!std::isfinite(t) || !std::isfinite(e)) {
      scan.specials_wrong |= !(v == e || (std::isnan(v) && std::isnan(e)));
      continue;
    }
    nan |= std::isnan(v);
    scan.not_finite |= !std::isfinite(v);
    const double row = scale.rows.empty() ? scale.rms : scale.rows[i / columns];
    const double local = scale.columns.empty() ? row : std::min(row, scale.columns[i % columns]);
    const double error = std::abs(v - t), scaled = error / (std::abs(t) + scale.rms);
    squares += scaled * scaled;
    scan.scaled.max = std::max(scan.scaled.max, scaled);
    scan.scaled.local = std::max(scan.scaled.local, error / (std::abs(t) + local));
    scan.max_abs = std::max(scan.max_abs, error);
    scan.eager_max_abs = std::max(scan.eager_max_abs, std::abs(e - t));
    largest = std::max(largest, std::abs(t) + scale.rms);
    if (std::abs(t) >= scale.fill_limit) scan.scaled.fill = std::max(scan.scaled.fill, error / std::abs(t));
    sizeable += std::abs(t) > kLeastScale;
    lost += std::abs(t) > kLeastScale && error > std::abs(t) / 4;
    const double difference = (v - t) / (std::abs(t) + scale.rms), share = t / (std::abs(t) + scale.rms);
    along += difference * share;
    shares += share * share;
    sum += difference;
    sizes += std::abs(share);
  }
  if (lost > 4) scan.scaled.lost = static_cast<double>(lost - 4) / static_cast<double>(sizeable);
  if (shares > 0) scan.scaled.bias = std::max(std::abs(along) / shares, std::abs(sum) / sizes);
  scan.scaled.rms = std::sqrt(squares / static_cast<double>(truths.size()));
  if (nan) scan.scaled = {kNan, kNan, kNan, kNan, kNan, kNan, kNan}, scan.max_abs = kNan;
  const auto numel = static_cast<int64_t>(truths.size());
  if (scale.counted > 0) scan.largest_weight = scale.counted < numel ? std::max(1.0, largest) : largest;
  return scan;
}

// Of the slices of a tensor of two axes; `least`: of the elements at a place, of few.
void expect_scales(const std::vector<double>& scales, const std::vector<SliceSum>& sums, size_t length, double rms,
                   const std::vector<double>& least) {
  if (scales.empty()) return;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto not_zero = static_cast<size_t>(sums[i].not_zero);
    const bool counts = not_zero >= 8 && 2 * not_zero >= length;
    const double of_slice = std::sqrt(sums[i].squares / static_cast<double>(length));
    double expected = counts ? std::min(rms, of_slice) : rms;
    if (!least.empty()) expected = std::min(expected, least[i]);
    if (!(std::abs(scales[i] - expected) <= 1e-12 * rms)) FAIL() << i << ": " << scales[i] << ", not " << expected;
  }
}

void expect_plain_scale(const ErrorScale& scale, const at::Tensor& eager, const at::Tensor& truth) {
  const std::vector<double> eagers = numbers_of(eager), truths = numbers_of(truth);
  const auto columns = static_cast<size_t>(RowShape(truth.sizes()).columns);
  const size_t rows = truths.size() / columns;
  std::vector<SliceSum> by_row(rows), by_column(columns);
  std::vector<double> least(truths.size() < 64 ? columns : 0, kInfinity);
  double squares = 0;
  int64_t counted = 0, fills = 0;
  for (size_t i = 0; i < truths.size(); ++i) {
    if (!std::isfinite(truths[i]) || !std::isfinite(eagers[i])) continue;
    const double square = truths[i] * truths[i];
    ++counted;
    if (!least.empty() && truths[i] != 0) least[i % columns] = std::min(least[i % columns], std::abs(truths[i]));
    if (std::abs(truths[i]) >= scale.fill_limit) {
      ++fills;
      continue;
    }
    squares += square;
    by_row[i / columns].add(square, square > 0);
    by_column[i % columns].add(square, square > 0);
  }
  EXPECT_EQ(scale.counted, counted);
  EXPECT_NEAR(scale.rms, squares > 0 ? std::sqrt(squares / static_cast<double>(counted - fills)) : 1,
              1e-12 * scale.rms);
  if (truth.dim() == 2) expect_scales(scale.rows, by_row, columns, scale.rms, {});
  expect_scales(scale.columns, by_column, rows >= 8 ? rows : SIZE_MAX, scale.rms, least);
}

void expect_near(double a, double b, const char* what) {
  if (std::isfinite(b)) {
    EXPECT_NEAR(a, b, 1e-12 * std::abs(b)) << what;
  } else {
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << " " << a << " " << b;
  }
}

void expect_same(const ErrorScan& a, const ErrorScan& b) {
  expect_near(a.scaled.max, b.scaled.max, "max");
  expect_near(a.scaled.rms, b.scaled.rms, "rms");
  expect_near(a.scaled.local, b.scaled.local, "local");
  expect_near(a.scaled.lost, b.scaled.lost, "lost");
  expect_near(a.scaled.fill, b.scaled.fill, "fill");
  if (std::isfinite(b.scaled.bias)) { EXPECT_NEAR(a.scaled.bias, b.scaled.bias, 1e-9 * std::max(1.0, b.scaled.max)); }
  expect_near(a.max_abs, b.max_abs, "max_abs");
  expect_near(a.eager_max_abs, b.eager_max_abs, "eager_max_abs");
  expect_near(a.largest_weight, b.largest_weight, "largest_weight");
  EXPECT_EQ(a.not_finite, b.not_finite);
  EXPECT_EQ(a.specials_wrong, b.specials_wrong);
}

// Each of them in place of a share of the elements.
at::Tensor with_specials(const at::Tensor& tensor, double share, const std::vector<double>& specials) {
  at::Tensor result = tensor.clone();
  for (double special : specials) result.masked_fill_(at::rand(tensor.sizes()).lt(share), special);
  return result;
}

// Errors of random numbers, rows of which are of many sizes, a share of which is special.
void expect_plain_scan(const std::vector<int64_t>& sizes, at::ScalarType type, double share) {
  std::vector<int64_t> by_row(sizes.size(), 1);
  by_row[0] = sizes[0];
  const at::Tensor decay = at::exp2(at::rand(by_row, at::kDouble).mul(-9));
  const at::Tensor finite = with_specials(at::randn(sizes, at::kDouble).mul(decay), share, {0.0});
  const at::Tensor truth = with_specials(finite, share / 4, {kInfinity, -kInfinity, kNan});
  const at::Tensor rounded = truth.mul(at::randn(sizes, at::kDouble).mul(1e-3).add(1)).to(type);
  const at::Tensor eager = with_specials(rounded, share / 9, {kInfinity});
  const ErrorScale scale = scale_of(eager, truth);
  expect_plain_scale(scale, eager, truth);
  const at::Tensor value = at::where(eager.isfinite(), truth.mul(1 + 1e-3).to(type), eager);
  for (const auto& specials : std::vector<std::vector<double>>{{}, {0.0}, {kInfinity}, {kNan}}) {
    const at::Tensor changed = with_specials(value, share / 4, specials);
    expect_same(scan_errors(changed, eager, truth, scale), plain_scan(changed, eager, truth, scale));
  }
}

TEST(ErrorScan, IsWhatTheFormulasSay) {
  at::manual_seed(11);
  const std::vector<std::vector<int64_t>> shapes = {{1},       {2},        {7},         {1023},      {1025},
                                                    {40'001},  {3, 5},     {9, 1},      {100, 129},  {2, 3000},
                                                    {5000, 3}, {17, 1031}, {4, 33, 65}, {20'000, 2}, {9, 2000}};
  const std::vector<at::ScalarType> types = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
  size_t turn = 0;
  for (const auto& sizes : shapes) {
    for (const double share : {0.0, 1e-4, 0.05, 0.4, 1.0}) {
      const auto type = types[turn++ % types.size()];
      SCOPED_TRACE(::testing::Message() << at::IntArrayRef(sizes) << " " << type << " " << share);
      expect_plain_scan(sizes, type, share);
    }
  }
}

// -1e9 where a mask hides a score, other numbers where two masks do: none of these says how large scores are.
TEST(ErrorScan, TakesNothingForAFillBesideNumbersBelowTheLeastNormalOne) {
  at::Tensor truth = at::zeros({150}, at::kDouble);
  truth[3] = 1.0;
  truth[77] = 1.0;
  truth[135] = 6.5e-43;
  EXPECT_EQ(scale_of(truth, truth).fill_limit, kInfinity);
  truth[135] = 1e-20;
  EXPECT_LT(scale_of(truth, truth).fill_limit, 1);
}

TEST(ErrorScan, LeavesFillsOutOfScales) {
  at::manual_seed(4);
  const at::Tensor scores = at::randn({40, 50}, at::kDouble), mask = at::rand({40, 50}).lt(0.9);
  for (const double fill : {-1e4, -1e9, -9e15, 1e30, -3.4028234663852886e38}) {
    const at::Tensor truth = at::where(mask, at::full({}, fill, at::kDouble), scores);
    const at::Tensor eager = truth.to(at::kFloat);
    const ErrorScale scale = scale_of(eager, truth);
    EXPECT_NEAR(scale.rms, 1, 0.3) << fill;
    EXPECT_EQ(scale.counted, 2000);
    EXPECT_LT(scan_errors(eager, eager, truth, scale).scaled.fill, 1e-7);
    const ErrorScan zeros = scan_errors(at::where(mask, truth, 0), eager, truth, scale),
                    other = scan_errors(at::where(mask, truth * 1.01, truth), eager, truth, scale);
    EXPECT_GT(zeros.scaled.max, 0.1);
    EXPECT_EQ(zeros.scaled.fill, 0);
    EXPECT_NEAR(other.scaled.fill, 0.01, 1e-6);
  }
}

// What exact terms leave where they cancel is no scale: eager knows nothing of it.
TEST(ErrorScan, TakesRoundingsForNoScale) {
  at::manual_seed(4);
  const at::Tensor truth = at::eye(20, at::kDouble).add(at::randn({20, 20}, at::kDouble).mul(1e-16));
  const at::Tensor eager = truth.add(at::randn({20, 20}, at::kDouble).mul(1e-7)).to(at::kFloat);
  EXPECT_GT(scale_of(eager, truth).rms, 0.1);
}

TEST(ErrorScan, HoldsEachOfFewElementsAgainstItself) {
  const at::Tensor truth = at::tensor({1000.0, 1.0, 0.001}, at::kDouble), last = at::tensor({1.0, 1.0, 0.0});
  const ErrorScale scale = scale_of(truth, truth);
  EXPECT_GT(scan_errors(truth * last, truth, truth, scale).scaled.local, 0.4);
  EXPECT_LT(scan_errors(truth * (1 + 1e-6), truth, truth, scale).scaled.local, 1e-6);
}

// A difference of finite numbers may overflow.
TEST(ErrorScan, TakesNumbersThatOverflow) {
  const double huge = std::numeric_limits<double>::max();
  at::Tensor truth = at::ones({50}, at::kDouble), value = truth.clone();
  truth[20] = -huge;
  value[20] = huge;
  for (const double rms : {1.0, huge}) {
    ErrorScale scale;
    scale.rms = rms;
    scale.counted = 50;
    expect_same(scan_errors(value, truth, truth, scale), plain_scan(value, truth, truth, scale));
  }
}

}  // namespace
}  // namespace tilepilot::eval
