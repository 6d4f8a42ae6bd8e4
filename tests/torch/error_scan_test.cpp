// The scan of errors against the formulas of docs/verification.md, element by element.
#include "eval/worker/truth/error_scan.h"

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
  double squares = 0, largest = 0;
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
  }
  scan.scaled.rms = std::sqrt(squares / static_cast<double>(truths.size()));
  if (nan) scan.scaled.max = scan.scaled.local = scan.scaled.rms = scan.max_abs = kNan;
  const auto numel = static_cast<int64_t>(truths.size());
  if (scale.counted > 0) scan.largest_weight = scale.counted < numel ? std::max(1.0, largest) : largest;
  return scan;
}

// Of the slices of a tensor of two axes.
void expect_scales(const std::vector<double>& scales, const std::vector<SliceSum>& sums, size_t length, double rms) {
  if (scales.empty()) return;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto not_zero = static_cast<size_t>(sums[i].not_zero);
    const bool counts = not_zero >= 8 && 2 * not_zero >= length;
    const double of_slice = std::sqrt(sums[i].squares / static_cast<double>(length));
    const double expected = counts ? std::min(rms, of_slice) : rms;
    if (!(std::abs(scales[i] - expected) <= 1e-12 * rms)) FAIL() << i << ": " << scales[i] << ", not " << expected;
  }
}

void expect_plain_scale(const ErrorScale& scale, const at::Tensor& eager, const at::Tensor& truth) {
  const std::vector<double> eagers = numbers_of(eager), truths = numbers_of(truth);
  const auto columns = static_cast<size_t>(RowShape(truth.sizes()).columns);
  const size_t rows = truths.size() / columns;
  std::vector<SliceSum> by_row(rows), by_column(columns);
  double squares = 0;
  int64_t counted = 0;
  for (size_t i = 0; i < truths.size(); ++i) {
    if (!std::isfinite(truths[i]) || !std::isfinite(eagers[i])) continue;
    const double square = truths[i] * truths[i];
    ++counted;
    squares += square;
    by_row[i / columns].add(square, square > 0);
    by_column[i % columns].add(square, square > 0);
  }
  EXPECT_EQ(scale.counted, counted);
  EXPECT_NEAR(scale.rms, squares > 0 ? std::sqrt(squares / static_cast<double>(counted)) : 1, 1e-12 * scale.rms);
  if (truth.dim() == 2) expect_scales(scale.rows, by_row, columns, scale.rms);
  expect_scales(scale.columns, by_column, rows, scale.rms);
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
