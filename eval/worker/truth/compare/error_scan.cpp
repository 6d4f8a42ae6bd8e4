#include "eval/worker/truth/compare/error_scan.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/torch/threads.h"
#include "eval/worker/truth/compare/gpu_scan.h"
#include "eval/worker/truth/compare/usual_size.h"

namespace tilepilot::eval {
namespace {

constexpr int64_t kParts = 16;         // of the elements, each summed by one thread: sums do not depend on their number
constexpr int64_t kFewestOfSlice = 8;  // elements of a slice whose rms says something, and half of it not zero
constexpr int64_t kFewElements = 64;   // of a tensor, each of which is held against itself
constexpr int64_t kFewLost = 4;        // elements next to zero that roundings may leave anywhere
// Elements that operators work on.
constexpr int64_t kAtOnce = int64_t{1} << 22, kAtOnceOnGpu = int64_t{1} << 25;

using Buffer = std::array<double, kErrorChunk>;

bool is_readable(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

at::Tensor readable(const at::Tensor& tensor) {
  return (is_readable(tensor.scalar_type()) ? tensor : tensor.to(at::kDouble)).contiguous();
}

// Elements from `begin` on, in `buffer` unless they are float64 already.
const double* load(const at::Tensor& tensor, int64_t begin, int64_t count, Buffer& buffer) {
  if (tensor.scalar_type() == at::kDouble) return tensor.const_data_ptr<double>() + begin;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, tensor.scalar_type(), "load", [&] {
    std::copy_n(tensor.const_data_ptr<scalar_t>() + begin, count, buffer.begin());
  });
  return buffer.data();
}

// `body(part, begin, end)` for at most `most` parts of that many elements.
template <class Body>
void in_parts(int64_t elements, int64_t most, const Body& body) {
  const int64_t chunks = (elements + kErrorChunk - 1) / kErrorChunk;
  const int64_t length = (chunks + most - 1) / most * kErrorChunk;
  libtorch_threads()((elements + length - 1) / length, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      body(static_cast<size_t>(part), part * length, std::min((part + 1) * length, elements));
  });
}

// `body(row, column, offset, count)` for the pieces of rows that elements from `begin` on are; `offset` is from there.
template <class Body>
void in_rows(int64_t begin, int64_t count, int64_t columns, const Body& body) {
  int64_t row = begin / columns, column = begin % columns;
  for (int64_t offset = 0; offset < count; column = 0, ++row) {
    const int64_t length = std::min(columns - column, count - offset);
    body(row, column, offset, length);
    offset += length;
  }
}

double root_of_mean(double squares, int64_t count) { return std::sqrt(squares / static_cast<double>(count)); }

// Least so far, and the rms of another slice of so many elements. What `relu` leaves of a slice may be one number that
// is small by cancellation: where most elements are zero, the others' size says nothing of their errors.
void lower(double& least, const SliceSum& sum, int64_t elements) {
  if (sum.not_zero >= kFewestOfSlice && 2 * sum.not_zero >= elements)
    least = std::min(least, std::max(kLeastScale, root_of_mean(sum.squares, elements)));
}

int64_t rows_at_once(const at::Tensor& tensor, int64_t columns) {
  return std::max<int64_t>(1, (tensor.is_cpu() ? kAtOnce : kAtOnceOnGpu) / columns);
}

double largest_of(const at::Tensor& tensor) { return tensor.numel() > 0 ? tensor.max().item<double>() : 0; }

}  // namespace

at::Tensor on_device(const std::vector<double>& numbers, int64_t begin, int64_t count, c10::Device device) {
  at::Tensor tensor = at::empty({count}, at::kDouble);
  std::copy_n(numbers.begin() + begin, count, tensor.mutable_data_ptr<double>());
  return tensor.to(device);
}

RowShape::RowShape(at::IntArrayRef sizes) {
  for (int64_t extent : sizes) {
    if (extent != 1) leading.push_back(extent);
  }
  if (leading.empty()) return;
  columns = leading.back();
  leading.pop_back();
  for (int64_t extent : leading) rows *= extent;
}

ScaleBuilder::ScaleBuilder(at::IntArrayRef sizes, ScanPlace place, double fill_limit)
    : shape_(sizes), place_(place), fill_limit_(fill_limit) {
  if (shape_.rows * shape_.columns < kFewElements)
    least_.assign(static_cast<size_t>(shape_.columns), std::numeric_limits<double>::infinity());
  rows_.resize(static_cast<size_t>(shape_.rows));
  if (shape_.rows >= kFewestOfSlice) columns_.resize(static_cast<size_t>(shape_.columns));
}

void ScaleBuilder::add(const at::Tensor& eager, const at::Tensor& truth) {
  if (truth.numel() == 0) return;
  if (truth.is_cpu() && eager.is_cpu() && place_ == ScanPlace::nearest) {
    add_on_host(readable(eager), readable(truth));
  } else if (place_ == ScanPlace::operators || !add_by_kernels(eager, truth)) {
    add_by_operators(eager, truth);
  }
  if (!least_.empty()) see_places(eager, truth);
  next_row_ += truth.numel() / shape_.columns;
}

void ScaleBuilder::see_places(const at::Tensor& eager, const at::Tensor& truth) {
  const at::Tensor t = truth.cpu().to(at::kDouble).contiguous(), e = eager.cpu().to(at::kDouble).contiguous();
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double size = std::abs(t.const_data_ptr<double>()[i]);
    double& least = least_[static_cast<size_t>(i % shape_.columns)];
    if (size > kLeastScale && std::isfinite(e.const_data_ptr<double>()[i])) least = std::min(least, size);
  }
}

void ScaleBuilder::add_on_host(const at::Tensor& eager, const at::Tensor& truth) {
  const int64_t columns = shape_.columns;
  struct Part {
    int64_t first_row = 0;
    SquaredElements seen;
    std::vector<SliceSum> rows;
    std::vector<double> squares, not_zero;  // by column
  };
  std::array<Part, kParts> parts;
  // Sums by column of a few rows would take longer to join than to make.
  const int64_t most = columns_.empty() ? kParts : std::clamp<int64_t>(shape_.rows / kFewestOfSlice, 1, kParts);
  in_parts(truth.numel(), most, [&](size_t number, int64_t first, int64_t end) {
    Part& part = parts[number];
    part.first_row = first / columns;
    part.rows.resize(static_cast<size_t>((end - 1) / columns - part.first_row + 1));
    part.squares.resize(columns_.size());
    part.not_zero.resize(columns_.size());
    for (int64_t begin = first; begin < end; begin += kErrorChunk) {
      const int64_t count = std::min(kErrorChunk, end - begin);
      Buffer e, t, squares;
      part.seen.add(square_elements(load(eager, begin, count, e), load(truth, begin, count, t), fill_limit_, count,
                                    squares.data()));
      in_rows(begin, count, columns, [&](int64_t row, int64_t column, int64_t offset, int64_t length) {
        const double* piece = squares.data() + offset;
        const SliceSum sum = sum_of(piece, length);
        part.rows[static_cast<size_t>(row - part.first_row)].add(sum.squares, sum.not_zero);
        if (columns_.empty()) return;
        double *by_column = part.squares.data() + column, *not_zero = part.not_zero.data() + column;
        for (int64_t i = 0; i < length; ++i) by_column[i] += piece[i];
        for (int64_t i = 0; i < length; ++i) not_zero[i] += piece[i] > 0 ? 1 : 0;
      });
    }
  });
  for (const Part& part : parts) {
    SliceSum* rows = rows_.data() + next_row_ + part.first_row;
    for (size_t i = 0; i < part.rows.size(); ++i) rows[i].add(part.rows[i].squares, part.rows[i].not_zero);
    for (size_t i = 0; i < part.squares.size(); ++i)
      columns_[i].add(part.squares[i], static_cast<int64_t>(part.not_zero[i]));
    counted_ += part.seen.counted;
    fills_ += part.seen.fills;
    largest_ = std::max(largest_, part.seen.largest);
  }
}

bool ScaleBuilder::add_by_kernels(const at::Tensor& eager, const at::Tensor& truth) {
  RowShape part = shape_;
  part.rows = truth.numel() / shape_.columns;
  const ScanKernels* kernels = scan_kernels_for({eager, truth}, part);
  const auto sums = kernels ? sum_scales(*kernels, eager, truth, part, fill_limit_, !columns_.empty()) : std::nullopt;
  if (!sums) return false;
  for (size_t i = 0; i < sums->row_squares.size(); ++i)
    rows_[static_cast<size_t>(next_row_) + i].add(sums->row_squares[i], sums->rows_not_zero[i]);
  for (size_t i = 0; i < sums->column_squares.size(); ++i)
    columns_[i].add(sums->column_squares[i], sums->columns_not_zero[i]);
  counted_ += sums->seen.counted;
  fills_ += sums->seen.fills;
  largest_ = std::max(largest_, sums->seen.largest);
  return true;
}

void ScaleBuilder::add_by_operators(const at::Tensor& given_eager, const at::Tensor& given_truth) {
  const at::Tensor eager = given_eager.reshape({-1, shape_.columns}), truth = given_truth.reshape({-1, shape_.columns});
  const int64_t step = rows_at_once(truth, shape_.columns);
  for (int64_t begin = 0; begin < truth.size(0); begin += step) {
    const int64_t count = std::min(step, truth.size(0) - begin);
    const at::Tensor t = truth.narrow(0, begin, count).to(at::kDouble),
                     e = eager.narrow(0, begin, count).to(t.device());
    const at::Tensor mask = t.isfinite().logical_and_(e.isfinite());
    const at::Tensor fills = t.abs().ge(fill_limit_).logical_and_(mask);
    const at::Tensor counts = mask.logical_and(fills.logical_not()), zero = at::zeros({}, t.options());
    const at::Tensor squares = at::where(counts, t.square(), zero);
    const at::Tensor not_zero = squares.gt(0);
    auto add = [&](SliceSum* slices, int64_t axis) {
      const at::Tensor sums = squares.sum(axis).cpu(), some = not_zero.sum(axis).cpu();
      for (int64_t i = 0; i < sums.numel(); ++i)
        slices[i].add(sums.const_data_ptr<double>()[i], some.const_data_ptr<int64_t>()[i]);
    };
    add(rows_.data() + next_row_ + begin, 1);
    if (!columns_.empty()) add(columns_.data(), 0);
    counted_ += mask.sum().item<int64_t>();
    fills_ += fills.sum().item<int64_t>();
    largest_ = std::max(largest_, largest_of(at::where(counts, t.abs(), zero)));
  }
}

ErrorScale ScaleBuilder::finish() const {
  ErrorScale scale;
  scale.counted = counted_;
  double squares = 0;
  for (const SliceSum& each : rows_) squares += each.squares;
  scale.fill_limit = fill_limit_;
  if (counted_ > fills_ && squares > 0) scale.rms = root_of_mean(squares, counted_ - fills_);
  const int64_t numel = shape_.rows * shape_.columns;
  if (numel == 0) return scale;
  scale.columns.assign(columns_.size(), scale.rms);
  for (size_t i = 0; i < columns_.size(); ++i) lower(scale.columns[i], columns_[i], shape_.rows);
  if (!least_.empty()) {
    // What exact terms leave where they cancel is no size.
    constexpr double kLeft = 0x1p-44;
    scale.columns.resize(least_.size(), scale.rms);
    for (size_t i = 0; i < least_.size(); ++i)
      if (least_[i] > kLeft * scale.rms) scale.columns[i] = std::min(scale.columns[i], least_[i]);
  }
  if (shape_.rows == 1) return scale;
  scale.rows.assign(rows_.size(), scale.rms);
  if (shape_.columns >= kFewestOfSlice) {
    for (size_t i = 0; i < rows_.size(); ++i) lower(scale.rows[i], rows_[i], shape_.columns);
  }
  int64_t inner = shape_.rows;
  for (int64_t extent : shape_.leading) {
    inner /= extent;
    const int64_t elements = numel / extent;
    if (elements < kFewestOfSlice || elements == shape_.columns) continue;  // the latter: rows
    std::vector<SliceSum> sums(static_cast<size_t>(extent));
    auto index = [&](size_t row) { return static_cast<size_t>(static_cast<int64_t>(row) / inner % extent); };
    for (size_t row = 0; row < rows_.size(); ++row) sums[index(row)].add(rows_[row].squares, rows_[row].not_zero);
    for (size_t row = 0; row < rows_.size(); ++row) lower(scale.rows[row], sums[index(row)], elements);
  }
  return scale;
}

GroupedSquares::GroupedSquares(int64_t count) : count_(count) {
  while (count >> shift_ > kMostGroups) ++shift_;
  sums_.resize(static_cast<size_t>((count + (int64_t{1} << shift_) - 1) >> shift_));
}

void GroupedSquares::add(int64_t first, const double* squares, int64_t count) {
  if (shift_ == 0) {
    double* sums = sums_.data() + first;
    for (int64_t i = 0; i < count; ++i) sums[i] += squares[i];
    return;
  }
  for (int64_t i = 0; i < count;) {
    const int64_t group = (first + i) >> shift_, next = (group + 1) << shift_;
    const int64_t length = std::min(count - i, next - (first + i));
    add(first + i, sum_of(squares + i, length).squares);
    i += length;
  }
}

void GroupedSquares::add(const GroupedSquares& other) {
  for (size_t i = 0; i < other.sums_.size(); ++i) sums_[i] += other.sums_[i];
}

void GroupedSquares::add(const std::vector<double>& sums) {
  for (size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
}

double GroupedSquares::sum() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

double GroupedSquares::median(int64_t elements) const {
  std::vector<double> means = sums_;
  for (size_t i = 0; i < means.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) << shift_;
    means[i] /= static_cast<double>(std::min(int64_t{1} << shift_, count_ - begin) * elements);
  }
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  return std::sqrt(*middle);
}

ErrorMeter::ErrorMeter(at::IntArrayRef sizes, const ErrorScale& scale, ScanPlace place)
    : shape_(sizes), scale_(scale), place_(place), rows_(shape_.rows), columns_(shape_.columns) {}

void ErrorMeter::add(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth) {
  if (truth.numel() == 0) return;
  if (truth.is_cpu() && value.is_cpu() && eager.is_cpu() && place_ == ScanPlace::nearest) {
    add_on_host(readable(value), readable(eager), readable(truth));
  } else if (place_ == ScanPlace::operators || !add_by_kernels(value, eager, truth)) {
    add_by_operators(value, eager, truth);
  }
  next_row_ += truth.numel() / shape_.columns;
  seen_ += truth.numel();
}

void ErrorMeter::add_on_host(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth) {
  const int64_t columns = shape_.columns;
  struct Part {
    ErrorExtremes extremes;
    GroupedSquares rows, columns;
  };
  std::array<Part, kParts> parts;
  in_parts(truth.numel(), kParts, [&](size_t number, int64_t first, int64_t end) {
    Part& part = parts[number];
    part.rows = GroupedSquares(shape_.rows);
    part.columns = GroupedSquares(columns);
    for (int64_t begin = first; begin < end; begin += kErrorChunk) {
      const int64_t count = std::min(kErrorChunk, end - begin);
      Buffer v, e, t, local, squares;
      in_rows(begin, count, columns, [&](int64_t row, int64_t column, int64_t offset, int64_t length) {
        local_scales(next_row_ + row, column, length, local.data() + offset);
      });
      const ErrorOperands operands = {load(value, begin, count, v),
                                      load(eager, begin, count, e),
                                      load(truth, begin, count, t),
                                      scale_.rms,
                                      local.data(),
                                      scale_.fill_limit};
      compare_elements(operands, count, squares.data(), part.extremes);
      in_rows(begin, count, columns, [&](int64_t row, int64_t column, int64_t offset, int64_t length) {
        part.rows.add(next_row_ + row, sum_of(squares.data() + offset, length).squares);
        part.columns.add(column, squares.data() + offset, length);
      });
    }
  });
  for (const Part& part : parts) {
    seen_values_.add(part.extremes);
    rows_.add(part.rows);
    columns_.add(part.columns);
  }
}

void ErrorMeter::local_scales(int64_t row, int64_t column, int64_t count, double* scales) const {
  const double of_row = scale_.rows.empty() ? scale_.rms : scale_.rows[static_cast<size_t>(row)];
  if (scale_.columns.empty()) {
    std::fill_n(scales, count, of_row);
  } else {
    const double* of_columns = scale_.columns.data() + column;
    for (int64_t i = 0; i < count; ++i) scales[i] = std::min(of_row, of_columns[i]);
  }
}

bool ErrorMeter::add_by_kernels(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth) {
  RowShape part = shape_;
  part.rows = truth.numel() / shape_.columns;
  const ScanKernels* kernels = scan_kernels_for({value, eager, truth}, part);
  const ErrorPlaces places{next_row_, shape_.rows, rows_.shift(), columns_.shift()};
  const auto sums = kernels ? sum_errors(*kernels, value, eager, truth, part, scale_, places) : std::nullopt;
  if (!sums) return false;
  seen_values_.add(sums->seen);
  rows_.add(sums->row_squares);
  columns_.add(sums->column_squares);
  return true;
}

void ErrorMeter::add_by_operators(const at::Tensor& given_value, const at::Tensor& given_eager,
                                  const at::Tensor& given_truth) {
  const at::Tensor value = given_value.reshape({-1, shape_.columns}), eager = given_eager.reshape({-1, shape_.columns}),
                   truth = given_truth.reshape({-1, shape_.columns});
  const auto device = truth.device();
  const at::Tensor zero = at::zeros({}, at::dtype(at::kDouble).device(device));
  const at::Tensor columns = scale_.columns.empty() ? at::full({1}, scale_.rms, zero.options())
                                                    : on_device(scale_.columns, 0, shape_.columns, device);
  const int64_t step = rows_at_once(truth, shape_.columns);
  for (int64_t begin = 0; begin < truth.size(0); begin += step) {
    const int64_t count = std::min(step, truth.size(0) - begin);
    auto part_of = [&](const at::Tensor& whole) { return whole.narrow(0, begin, count).to(device, at::kDouble); };
    const at::Tensor v = part_of(value), e = part_of(eager), t = part_of(truth);
    const at::Tensor mask = t.isfinite().logical_and_(e.isfinite());
    const at::Tensor same = v.eq(e).logical_or_(v.isnan().logical_and_(e.isnan()));
    ErrorExtremes seen;
    seen.specials_wrong = mask.logical_or(same).logical_not_().any().item<bool>();
    seen.not_finite = mask.logical_and(v.isfinite().logical_not_()).any().item<bool>();
    seen.nan = mask.logical_and(v.isnan()).any().item<bool>();
    const at::Tensor difference = at::where(mask, v.sub(t), zero), finite = at::where(mask, t, zero);
    const at::Tensor error = difference.abs(), magnitude = finite.abs(), weight = magnitude.add(scale_.rms);
    const at::Tensor rows = scale_.rows.empty() ? at::full({1}, scale_.rms, zero.options())
                                                : on_device(scale_.rows, next_row_ + begin, count, device).unsqueeze(1);
    const at::Tensor scaled = error.div(weight);
    const at::Tensor squares = scaled.square(), by_row = squares.sum(1).cpu(), by_column = squares.sum(0).cpu();
    for (int64_t i = 0; i < count; ++i) rows_.add(next_row_ + begin + i, by_row.const_data_ptr<double>()[i]);
    for (int64_t i = 0; i < shape_.columns; ++i) columns_.add(i, by_column.const_data_ptr<double>()[i]);
    seen.max = largest_of(scaled);
    seen.local = largest_of(error.div(magnitude.add(at::minimum(rows, columns))));
    seen.max_abs = largest_of(error);
    seen.eager_max_abs = largest_of(at::where(mask, e.sub(t).abs_(), zero));
    if (mask.any().item<bool>()) seen.largest = largest_of(magnitude) + scale_.rms;
    if (std::isfinite(scale_.fill_limit))
      seen.fill = largest_of(at::where(magnitude.ge(scale_.fill_limit), error.div(magnitude), zero));
    const at::Tensor share = finite.div(weight), part = difference.div(weight);
    seen.along = part.mul(share).sum().item<double>();
    seen.squares = share.square().sum().item<double>();
    seen.sum = part.sum().item<double>();
    seen.magnitudes = share.abs().sum().item<double>();
    const at::Tensor sizeable = magnitude.gt(kLeastScale);
    seen.sizeable = sizeable.sum().item<int64_t>();
    seen.lost = error.gt(magnitude.mul(kLostPart)).logical_and_(sizeable).sum().item<int64_t>();
    seen_values_.add(seen);
  }
}

ErrorScan ErrorMeter::finish() const {
  const ErrorExtremes& seen = seen_values_;
  ErrorScan scan;
  scan.scaled.max = seen.max;
  scan.scaled.local = seen.local;
  scan.scaled.fill = seen.fill;
  scan.max_abs = seen.max_abs;
  scan.eager_max_abs = seen.eager_max_abs;
  scan.not_finite = seen.not_finite;
  scan.specials_wrong = seen.specials_wrong;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (seen.nan) {
    scan.scaled = {nan, nan, nan, nan, nan, nan, nan};
    scan.max_abs = nan;
  } else if (seen_ > 0) {
    scan.scaled.rms = root_of_mean(rows_.sum(), seen_);
    const double of_rows = rows_.median(shape_.columns), of_columns = columns_.median(shape_.rows);
    // One row says nothing of the others.
    scan.scaled.usual = shape_.rows == 1 ? of_columns : std::min(of_rows, of_columns);
    if (seen.lost > kFewLost)
      scan.scaled.lost = static_cast<double>(seen.lost - kFewLost) / static_cast<double>(seen.sizeable);
    if (seen.squares > 0)
      scan.scaled.bias = std::max(std::abs(seen.along) / seen.squares, std::abs(seen.sum) / seen.magnitudes);
  }
  if (scale_.counted > 0) scan.largest_weight = scale_.counted < seen_ ? std::max(1.0, seen.largest) : seen.largest;
  return scan;
}

namespace {

// Elements below a limit, of which eager knows something or nothing.
struct Rest {
  double largest = 0, squares = 0, errors = 0;
};

// Ends early when an element below the limit is larger than `most`.
Rest rest_below(const at::Tensor& given_eager, const at::Tensor& given_truth, double limit, double most) {
  Rest rest;
  const int64_t columns = RowShape(given_truth.sizes()).columns;
  const at::Tensor eagers = given_eager.reshape({-1, columns}), truths = given_truth.reshape({-1, columns});
  const int64_t rows = truths.size(0);
  // A few rows first: mostly they have such an element.
  int64_t step = std::max<int64_t>(1, kErrorChunk / columns);
  for (int64_t begin = 0; begin < rows && rest.largest <= most; begin += step, step = rows_at_once(truths, columns)) {
    const int64_t count = std::min(step, rows - begin);
    const at::Tensor truth = truths.narrow(0, begin, count).to(at::kDouble),
                     eager = eagers.narrow(0, begin, count).to(truth.device(), at::kDouble),
                     counts = truth.abs().lt(limit).logical_and_(eager.isfinite()),
                     zero = at::zeros({}, truth.options());
    const at::Tensor size = at::where(counts, truth.abs(), zero);
    rest.largest = std::max(rest.largest, largest_of(size));
    if (rest.largest > most) break;
    rest.squares += size.square().sum().item<double>();
    rest.errors += at::where(counts, eager.sub(truth), zero).square_().sum().item<double>();
  }
  return rest;
}

// From which size on elements are fills: a gap is below them, and what is below the gap is known to eager. What is
// left where terms cancel is not. Where all else is as good as zero, as beside the one share that exponentials leave,
// there is no fill.
double fill_limit_of(const at::Tensor& eager, const at::Tensor& truth, double largest) {
  constexpr int kMostFills = 3;  // masks that are added
  constexpr double kKnown = 0x1p-4;
  double limit = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kMostFills; ++i) {
    const Rest rest = rest_below(eager, truth, largest / kOfOneFill, largest / kBeyond);
    const bool has_gap = rest.largest > kLeastScale && rest.largest <= largest / kBeyond;
    if (!has_gap || !(rest.errors <= kKnown * kKnown * rest.squares)) break;
    limit = largest / kOfOneFill;
    largest = rest.largest;
  }
  return limit;
}

}  // namespace

ErrorScale scale_of(const at::Tensor& eager, const at::Tensor& truth) {
  ScaleBuilder builder(truth.sizes());
  builder.add(eager, truth);
  if (!(builder.largest() > 0)) return builder.finish();
  const double limit = fill_limit_of(eager, truth, builder.largest());
  if (!std::isfinite(limit)) return builder.finish();
  ScaleBuilder without_fills(truth.sizes(), ScanPlace::nearest, limit);
  without_fills.add(eager, truth);
  return without_fills.finish();
}

ErrorScan scan_errors(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth,
                      const ErrorScale& scale) {
  ErrorMeter meter(truth.sizes(), scale);
  meter.add(value, eager, truth);
  return meter.finish();
}

ScaledError worse(ScaledError a, ScaledError b) {
  return {std::max(a.max, b.max),   std::max(a.rms, b.rms),   std::max(a.local, b.local), std::max(a.usual, b.usual),
          std::max(a.lost, b.lost), std::max(a.bias, b.bias), std::max(a.fill, b.fill)};
}

ScaledError worst_of(const std::vector<ScaledError>& errors) {
  ScaledError worst;
  for (auto& error : errors) worst = worse(worst, error);
  return worst;
}

}  // namespace tilepilot::eval
