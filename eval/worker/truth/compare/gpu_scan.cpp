#include "eval/worker/truth/compare/gpu_scan.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>

#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/driver.h"
#include "eval/torch/gpu.h"
#include "eval/worker/target_backend.h"

namespace tilepilot::embedded {
extern const char tilepilot_scan_arguments[];
extern const char tilepilot_scan_kernels[];
}  // namespace tilepilot::embedded

namespace tilepilot::eval {
namespace {

constexpr int kThreads = 256, kBlocksOfMultiprocessor = 8, kMostLanes = 32;
// Smaller ones take no time by operators either; sums of more rows or columns than that would take as much memory as
// the elements.
constexpr int64_t kFewest = int64_t{1} << 18, kMostSums = int64_t{1} << 24;

class GpuKernels final : public ScanKernels {
 public:
  static Result<std::unique_ptr<GpuKernels>> make() {
    std::unique_ptr<GpuKernels> made(new GpuKernels);
    made->device_ = TRY(runtime::cuda::Device::open());
    const std::string architecture = TRY(runtime::cuda::architecture_of(made->device_->capability()));
    DiagnosticList unused;
    runtime::cuda::Nvrtc compiler(nvrtc_options({}));
    const auto code = TRY(compiler.compile(scan_kernels_text(), architecture, unused));
    made->module_ = TRY(made->device_->load(code.cubin));
    for (const char* name : {"scale_rows", "scale_columns", "error_rows", "error_columns"})
      made->functions_.push_back(TRY(made->module_->function(name, 0)));
    return made;
  }

  int threads() const override { return kThreads; }
  int blocks() const override { return kBlocksOfMultiprocessor * device_->multiprocessors(); }
  bool run(const std::string& kernel, const ScanArguments& arguments) const override {
    const auto found = std::find_if(functions_.begin(), functions_.end(),
                                    [&](const runtime::cuda::Function& each) { return each.name() == kernel; });
    ScanArguments given = arguments;
    void* parameters[] = {&given};
    runtime::cuda::Function::Shape shape;
    shape.grid[0] = static_cast<uint32_t>(blocks());
    shape.threads[0] = kThreads;
    return device_->use().ok() && found->launch(shape, parameters, current_stream()).ok();
  }

 private:
  std::shared_ptr<runtime::cuda::Device> device_;
  std::shared_ptr<runtime::cuda::Module> module_;
  std::vector<runtime::cuda::Function> functions_;
};

std::optional<ScanType> scan_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return kScanDouble;
    case at::kFloat:
      return kScanFloat;
    case at::kHalf:
      return kScanHalf;
    case at::kBFloat16:
      return kScanBfloat16;
    default:
      return std::nullopt;
  }
}

ScanTensor scan_tensor(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(), scan_type(tensor.scalar_type()).value_or(kScanDouble)};
}

// A pass of the kernels over tensors: what it is given, and where its sums are.
class Pass {
 public:
  Pass(const ScanKernels& kernels, const at::Tensor& truth, const RowShape& shape) : kernels_(kernels) {
    numbers_ = at::zeros({int{kMaxima} + int{kSums}}, truth.options().dtype(at::kDouble));
    counts_ = at::zeros({kCounts}, truth.options().dtype(at::kLong));
    arguments.truth = scan_tensor(truth);
    arguments.rows = shape.rows;
    arguments.columns = shape.columns;
    arguments.least = kLeastScale;
    arguments.lost_part = kLostPart;
    arguments.maxima = numbers_.mutable_data_ptr<double>();
    arguments.sums = arguments.maxima + kMaxima;
    arguments.counts = reinterpret_cast<long long*>(counts_.mutable_data_ptr<int64_t>());
  }

  // So many numbers of zero, for sums.
  at::Tensor zeros(int64_t count, at::ScalarType type) const {
    return at::zeros({count}, numbers_.options().dtype(type));
  }

  bool run_rows(const char* kernel) {
    constexpr int64_t kOfLane = 128;  // elements of a piece that each thread has: then the lanes join their sums
    arguments.lanes = lanes();
    arguments.segment = arguments.lanes * kOfLane;
    return kernels_.run(kernel, arguments);
  }
  bool run_columns(const char* kernel) {
    arguments.lanes = lanes();
    const int64_t height = kernels_.threads() / arguments.lanes;
    const int64_t strips = (arguments.columns + arguments.lanes - 1) / arguments.lanes;
    constexpr int64_t kItemsOfBlock = 8, kLeastRows = 16;  // of each thread
    const int64_t wanted = arguments.rows * strips / (kItemsOfBlock * kernels_.blocks());
    arguments.segment = std::max(wanted, height * kLeastRows);
    return kernels_.run(kernel, arguments);
  }

  void read() {
    const at::Tensor numbers = numbers_.cpu(), counts = counts_.cpu();
    std::copy_n(numbers.const_data_ptr<double>(), kMaxima, maxima.begin());
    std::copy_n(numbers.const_data_ptr<double>() + kMaxima, kSums, sums.begin());
    std::copy_n(counts.const_data_ptr<int64_t>(), kCounts, seen.begin());
  }

  ScanArguments arguments{};
  std::array<double, kMaxima> maxima{};
  std::array<double, kSums> sums{};
  std::array<int64_t, kCounts> seen{};

 private:
  int lanes() const {
    const auto columns = static_cast<uint64_t>(std::clamp<int64_t>(arguments.columns, 1, kMostLanes));
    return std::min(static_cast<int>(std::bit_ceil(columns)), kernels_.threads());
  }

  const ScanKernels& kernels_;
  at::Tensor numbers_, counts_;
};

ScanSums sums_in(const at::Tensor& squares, const at::Tensor& not_zero = {}, int64_t first = 0, int shift = 0) {
  return {squares.mutable_data_ptr<double>(),
          not_zero.defined() ? reinterpret_cast<long long*>(not_zero.mutable_data_ptr<int64_t>()) : nullptr, first,
          shift};
}

template <class Number>
std::vector<Number> read(const at::Tensor& tensor) {
  const at::Tensor here = tensor.cpu();
  return {here.const_data_ptr<Number>(), here.const_data_ptr<Number>() + here.numel()};
}

bool is_for_kernels(const at::Tensor& tensor) {
  return tensor.is_cuda() && tensor.numel() >= kFewest && tensor.is_contiguous() && scan_type(tensor.scalar_type());
}

}  // namespace

std::string scan_kernels_text() {
  return std::string(embedded::tilepilot_scan_arguments) + embedded::tilepilot_scan_kernels;
}

const ScanKernels* gpu_scan_kernels() {
  // As LibTorch's own kernels: one for the process, never changed.
  static const std::unique_ptr<GpuKernels> kernels = []() -> std::unique_ptr<GpuKernels> {
    auto made = GpuKernels::make();
    return made.ok() ? *std::move(made) : nullptr;
  }();
  return kernels.get();
}

const ScanKernels* scan_kernels_for(std::initializer_list<at::Tensor> tensors, const RowShape& shape) {
  const bool fit = shape.rows <= kMostSums && shape.columns <= kMostSums &&
                   std::all_of(tensors.begin(), tensors.end(), is_for_kernels);
  return fit ? gpu_scan_kernels() : nullptr;
}

std::optional<ScaleSums> sum_scales(const ScanKernels& kernels, const at::Tensor& eager, const at::Tensor& truth,
                                    const RowShape& shape, double fill_limit, bool with_columns) {
  Pass pass(kernels, truth, shape);
  pass.arguments.eager = scan_tensor(eager);
  pass.arguments.fill_limit = fill_limit;
  const at::Tensor rows = pass.zeros(shape.rows, at::kDouble), in_rows = pass.zeros(shape.rows, at::kLong);
  pass.arguments.by_row = sums_in(rows, in_rows);
  if (!pass.run_rows("scale_rows")) return std::nullopt;
  ScaleSums found;
  if (with_columns) {
    const at::Tensor columns = pass.zeros(shape.columns, at::kDouble),
                     in_columns = pass.zeros(shape.columns, at::kLong);
    pass.arguments.by_column = sums_in(columns, in_columns);
    if (!pass.run_columns("scale_columns")) return std::nullopt;
    found.column_squares = read<double>(columns);
    found.columns_not_zero = read<int64_t>(in_columns);
  }
  found.row_squares = read<double>(rows);
  found.rows_not_zero = read<int64_t>(in_rows);
  pass.read();
  found.seen = {pass.seen[kCounted], pass.seen[kFills], pass.maxima[kLargest]};
  return found;
}

std::optional<ErrorSums> sum_errors(const ScanKernels& kernels, const at::Tensor& value, const at::Tensor& eager,
                                    const at::Tensor& truth, const RowShape& shape, const ErrorScale& scale,
                                    const ErrorPlaces& places) {
  Pass pass(kernels, truth, shape);
  auto& given = pass.arguments;
  given.value = scan_tensor(value);
  given.eager = scan_tensor(eager);
  given.rms = scale.rms;
  given.fill_limit = scale.fill_limit;
  at::Tensor row_scales, column_scales;
  if (!scale.rows.empty()) {
    row_scales = on_device(scale.rows, places.first_row, shape.rows, truth.device());
    given.row_scales = row_scales.const_data_ptr<double>();
  }
  if (!scale.columns.empty()) {
    column_scales = on_device(scale.columns, 0, shape.columns, truth.device());
    given.column_scales = column_scales.const_data_ptr<double>();
  }
  const auto groups = [](int64_t count, int shift) { return ((count - 1) >> shift) + 1; };
  const at::Tensor rows = pass.zeros(groups(places.rows, places.row_shift), at::kDouble),
                   columns = pass.zeros(groups(shape.columns, places.column_shift), at::kDouble);
  given.by_row = sums_in(rows, {}, places.first_row, places.row_shift);
  given.by_column = sums_in(columns, {}, 0, places.column_shift);
  if (!pass.run_rows("error_rows") || !pass.run_columns("error_columns")) return std::nullopt;
  ErrorSums found;
  found.row_squares = read<double>(rows);
  found.column_squares = read<double>(columns);
  pass.read();
  ErrorExtremes& seen = found.seen;
  seen.max = pass.maxima[kMax];
  seen.local = pass.maxima[kLocal];
  seen.max_abs = pass.maxima[kMaxAbs];
  seen.eager_max_abs = pass.maxima[kEagerMaxAbs];
  seen.largest = pass.maxima[kLargest];
  seen.fill = pass.maxima[kFill];
  seen.along = pass.sums[kAlong];
  seen.squares = pass.sums[kSquares];
  seen.sum = pass.sums[kSum];
  seen.magnitudes = pass.sums[kMagnitudes];
  seen.lost = pass.seen[kLost];
  seen.sizeable = pass.seen[kSizeable];
  seen.nan = pass.seen[kNan] > 0;
  seen.not_finite = pass.seen[kNotFinite] > 0;
  seen.specials_wrong = pass.seen[kSpecialsWrong] > 0;
  return found;
}

}  // namespace tilepilot::eval
