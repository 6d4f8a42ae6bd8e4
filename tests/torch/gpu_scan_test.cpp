// The kernels that scan errors on a GPU, here in one thread, against operators and against the processor's scan.
#include "eval/worker/truth/compare/gpu_scan.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>
#include <map>

#include "eval/torch/gpu.h"
#include "eval/worker/target_backend.h"

// What the kernels need of CUDA.
namespace tilepilot::eval::scan {
namespace {

struct Place {
  unsigned x = 0;
};
Place threadIdx, blockIdx, blockDim{1}, gridDim{1};

double atomicAdd(double* kept, double more) { return *kept += more; }
unsigned long long atomicAdd(unsigned long long* kept, long long more) {
  return *kept += static_cast<unsigned long long>(more);
}
long long atomicMax(long long* kept, long long other) { return *kept = std::max(*kept, other); }
float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
long long __double_as_longlong(double number) { return std::bit_cast<long long>(number); }
template <class Number>
Number __shfl_down_sync(unsigned, Number number, int, int) {
  return number;
}

}  // namespace
}  // namespace tilepilot::eval::scan

#define __device__
#define __global__
#include "eval/worker/truth/compare/scan_kernels.cu"
#undef __device__
#undef __global__

namespace tilepilot::eval {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

class InThisThread final : public ScanKernels {
 public:
  int threads() const override { return 1; }
  int blocks() const override { return 3; }
  bool run(const std::string& kernel, const ScanArguments& arguments) const override {
    static const std::map<std::string, std::function<void(ScanArguments)>> kernels = {
        {"scale_rows", scan::scale_rows},
        {"scale_columns", scan::scale_columns},
        {"error_rows", scan::error_rows},
        {"error_columns", scan::error_columns}};
    scan::gridDim.x = 3;
    for (scan::blockIdx.x = 0; scan::blockIdx.x < scan::gridDim.x; ++scan::blockIdx.x) kernels.at(kernel)(arguments);
    return true;
  }
};

struct Case {
  std::vector<int64_t> sizes;
  at::ScalarType type;
};

class GpuScan : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    at::manual_seed(3);
    truth_ = at::randn(GetParam().sizes, at::kDouble);
    const at::Tensor flat = truth_.view({-1});
    flat[3] = kInfinite;
    flat[5] = kNotANumber;
    flat[7] = 0;
    flat[11] = -1e4;
    eager_ = truth_.to(GetParam().type);
    value_ = truth_.mul(1.01).to(GetParam().type);
    value_.view({-1})[13] = kInfinite;
    value_.view({-1})[17] = 1e-7;  // subnormal in half precision
    eager_.view({-1})[19] = -kInfinite;
  }
  // As rows.
  at::Tensor wide(const at::Tensor& tensor) const { return tensor.to(at::kDouble).reshape({-1, shape().columns}); }
  RowShape shape() const { return RowShape(truth_.sizes()); }

  at::Tensor truth_, eager_, value_;
};

void expect_near(const std::vector<double>& found, const at::Tensor& wanted) {
  ASSERT_EQ(static_cast<int64_t>(found.size()), wanted.numel());
  for (size_t i = 0; i < found.size(); ++i) {
    const double number = wanted[static_cast<int64_t>(i)].item<double>();
    EXPECT_NEAR(found[i], number, 1e-12 * std::abs(number)) << i;
  }
}

TEST_P(GpuScan, SumsWhatScalesAreMadeOf) {
  for (const double fill_limit : {kInfinite, 1e3}) {
    const auto sums = sum_scales(InThisThread(), eager_, truth_, shape(), fill_limit, true);
    ASSERT_TRUE(sums);
    const at::Tensor t = wide(truth_), finite = t.isfinite().logical_and(wide(eager_).isfinite()),
                     fills = finite.logical_and(t.abs().ge(fill_limit)),
                     squares = at::where(finite.logical_and(fills.logical_not()), t.square(), 0.0);
    expect_near(sums->row_squares, squares.sum(1));
    expect_near(sums->column_squares, squares.sum(0));
    const auto numbers = [](const std::vector<int64_t>& counts) {
      return std::vector<double>(counts.begin(), counts.end());
    };
    expect_near(numbers(sums->rows_not_zero), squares.gt(0).sum(1));
    expect_near(numbers(sums->columns_not_zero), squares.gt(0).sum(0));
    EXPECT_EQ(sums->seen.counted, finite.sum().item<int64_t>());
    EXPECT_EQ(sums->seen.fills, fills.sum().item<int64_t>());
    EXPECT_EQ(sums->seen.largest, squares.sqrt().max().item<double>());
  }
}

TEST_P(GpuScan, SeesErrorsAsTheProcessorDoes) {
  const ErrorScale scale = scale_of(eager_, truth_);
  const int shift = 1;
  const ErrorPlaces places{0, shape().rows, shift, shift};
  const auto sums = sum_errors(InThisThread(), value_, eager_, truth_, shape(), scale, places);
  ASSERT_TRUE(sums);
  const at::Tensor value = wide(value_), eager = wide(eager_), truth = wide(truth_), squares = at::empty_like(truth);
  at::Tensor local = at::full_like(truth, scale.rms);
  const auto lower = [&](std::vector<double> scales, int64_t axis) {
    if (scales.empty()) return;
    const auto count = static_cast<int64_t>(scales.size());
    local = at::minimum(local, at::from_blob(scales.data(), {count}, at::kDouble).clone().unsqueeze(axis));
  };
  lower(scale.rows, 1);
  lower(scale.columns, 0);
  local = local.contiguous();
  ErrorExtremes wanted;
  compare_elements({value.const_data_ptr<double>(), eager.const_data_ptr<double>(), truth.const_data_ptr<double>(),
                    scale.rms, local.const_data_ptr<double>(), scale.fill_limit},
                   truth.numel(), squares.mutable_data_ptr<double>(), wanted);
  const ErrorExtremes& seen = sums->seen;
  EXPECT_EQ(seen.max, wanted.max);
  EXPECT_EQ(seen.local, wanted.local);
  EXPECT_EQ(seen.max_abs, wanted.max_abs);
  EXPECT_EQ(seen.eager_max_abs, wanted.eager_max_abs);
  EXPECT_EQ(seen.largest, wanted.largest);
  EXPECT_EQ(seen.fill, wanted.fill);
  EXPECT_EQ(seen.lost, wanted.lost);
  EXPECT_EQ(seen.sizeable, wanted.sizeable);
  EXPECT_EQ(seen.nan, wanted.nan);
  EXPECT_EQ(seen.not_finite, wanted.not_finite);
  EXPECT_EQ(seen.specials_wrong, wanted.specials_wrong);
  EXPECT_NEAR(seen.squares, wanted.squares, 1e-12 * wanted.squares);
  EXPECT_NEAR(seen.magnitudes, wanted.magnitudes, 1e-12 * wanted.magnitudes);
  // Two rows, or columns, have one sum.
  const auto expect_pairs = [&](const std::vector<double>& found, int64_t axis) {
    const int64_t count = squares.size(axis);
    ASSERT_EQ(static_cast<int64_t>(found.size()), (count + 1) / 2);
    for (int64_t i = 0; i < count; i += 2) {
      const double number = squares.narrow(axis, i, std::min<int64_t>(2, count - i)).sum().item<double>();
      const double pair = found[static_cast<size_t>(i / 2)];
      if (std::isinf(number))
        EXPECT_EQ(pair, number);
      else
        EXPECT_NEAR(pair, number, 1e-12 * number);
    }
  };
  expect_pairs(sums->row_squares, 0);
  expect_pairs(sums->column_squares, 1);
}

// On a GPU, in as many threads as there are.
TEST_P(GpuScan, GivesWhatOperatorsGiveOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  ASSERT_NE(gpu_scan_kernels(), nullptr);
  const auto there = [](const at::Tensor& tensor) { return tensor.to(gpu_device()); };
  const at::Tensor eager = there(eager_), truth = there(truth_);
  const auto sums = sum_scales(*gpu_scan_kernels(), eager, truth, shape(), kInfinite, true);
  const auto alone = sum_scales(InThisThread(), eager_, truth_, shape(), kInfinite, true);
  ASSERT_TRUE(sums && alone);
  EXPECT_EQ(sums->seen.counted, alone->seen.counted);
  EXPECT_EQ(sums->rows_not_zero, alone->rows_not_zero);
  EXPECT_EQ(sums->columns_not_zero, alone->columns_not_zero);
  for (size_t i = 0; i < sums->row_squares.size(); ++i)
    EXPECT_NEAR(sums->row_squares[i], alone->row_squares[i], 1e-12 * alone->row_squares[i]);
}

TEST(GpuScanText, IsCompiledForEachArchitecture) {
  runtime::cuda::Nvrtc compiler(nvrtc_options({}));
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    DiagnosticList warnings;
    const auto made = compiler.compile(scan_kernels_text(), architecture, warnings);
    ASSERT_TRUE(made.ok()) << made.error().message << (made.error().notes.empty() ? "" : made.error().notes[0].message);
    EXPECT_EQ(made->log, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GpuScan,
                         ::testing::Values(Case{{40, 1000}, at::kFloat}, Case{{7, 5, 33}, at::kBFloat16},
                                           Case{{2000, 3}, at::kHalf}, Case{{1, 700}, at::kDouble},
                                           Case{{64, 130}, at::kHalf}, Case{{500}, at::kFloat}),
                         [](const auto& info) {
                           std::string name = std::string(c10::toString(info.param.type));
                           for (const int64_t size : info.param.sizes) name += "_" + std::to_string(size);
                           return name;
                         });

}  // namespace
}  // namespace tilepilot::eval
