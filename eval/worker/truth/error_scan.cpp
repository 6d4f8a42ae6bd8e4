#include "eval/worker/truth/error_scan.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/torch/threads.h"

namespace tilepilot::eval {
namespace {

constexpr int64_t kParts = 16;  // of the elements, each summed by one thread: sums do not depend on their number
// Smaller than that, no slice has a scale: its roundings to float32 would be numbers below the least normal one, which
// functions flush to zero.
constexpr double kLeastScale = 0x1p-126 / 0x1p-23;
constexpr int64_t kFewestOfSlice = 8;  // elements of a slice whose rms says something, and half of it not zero
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

at::Tensor on_device(const std::vector<double>& numbers, int64_t begin, int64_t count, c10::Device device) {
  at::Tensor tensor = at::empty({count}, at::kDouble);
  std::copy_n(numbers.begin() + begin, count, tensor.mutable_data_ptr<double>());
  return tensor.to(device);
}

}  // namespace

RowShape::RowShape(at::IntArrayRef sizes) {
  for (int64_t extent : sizes) {
    if (extent != 1) leading.push_back(extent);
  }
  if (leading.empty()) return;
  columns = leading.back();
  leading.pop_back();
  for (int64_t extent : leading) rows *= extent;
}

ScaleBuilder::ScaleBuilder(at::IntArrayRef sizes, ScanPlace place) : shape_(sizes), place_(place) {
  rows_.resize(static_cast<size_t>(shape_.rows));
  if (shape_.rows >= kFewestOfSlice) columns_.resize(static_cast<size_t>(shape_.columns));
}

void ScaleBuilder::add(const at::Tensor& eager, const at::Tensor& truth) {
  if (truth.numel() == 0) return;
  if (truth.is_cpu() && eager.is_cpu() && place_ == ScanPlace::nearest) {
    add_on_host(readable(eager), readable(truth));
  } else {
    add_by_operators(eager, truth);
  }
  next_row_ += truth.numel() / shape_.columns;
}

void ScaleBuilder::add_on_host(const at::Tensor& eager, const at::Tensor& truth) {
  const int64_t columns = shape_.columns;
  struct Part {
    int64_t first_row = 0, counted = 0;
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
      part.counted +=
          square_elements(load(eager, begin, count, e), load(truth, begin, count, t), count, squares.data());
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
    counted_ += part.counted;
  }
}

void ScaleBuilder::add_by_operators(const at::Tensor& given_eager, const at::Tensor& given_truth) {
  const at::Tensor eager = given_eager.reshape({-1, shape_.columns}), truth = given_truth.reshape({-1, shape_.columns});
  const int64_t step = rows_at_once(truth, shape_.columns);
  for (int64_t begin = 0; begin < truth.size(0); begin += step) {
    const int64_t count = std::min(step, truth.size(0) - begin);
    const at::Tensor t = truth.narrow(0, begin, count).to(at::kDouble),
                     e = eager.narrow(0, begin, count).to(t.device());
    const at::Tensor mask = t.isfinite().logical_and_(e.isfinite());
    const at::Tensor squares = at::where(mask, t.square(), at::zeros({}, t.options()));
    const at::Tensor not_zero = squares.gt(0);
    auto add = [&](SliceSum* slices, int64_t axis) {
      const at::Tensor sums = squares.sum(axis).cpu(), counts = not_zero.sum(axis).cpu();
      for (int64_t i = 0; i < sums.numel(); ++i)
        slices[i].add(sums.const_data_ptr<double>()[i], counts.const_data_ptr<int64_t>()[i]);
    };
    add(rows_.data() + next_row_ + begin, 1);
    if (!columns_.empty()) add(columns_.data(), 0);
    counted_ += mask.sum().item<int64_t>();
  }
}

ErrorScale ScaleBuilder::finish() const {
  ErrorScale scale;
  scale.counted = counted_;
  double squares = 0;
  for (const SliceSum& each : rows_) squares += each.squares;
  if (counted_ > 0 && squares > 0) scale.rms = root_of_mean(squares, counted_);
  const int64_t numel = shape_.rows * shape_.columns;
  if (numel == 0) return scale;
  scale.columns.assign(columns_.size(), scale.rms);
  for (size_t i = 0; i < columns_.size(); ++i) lower(scale.columns[i], columns_[i], shape_.rows);
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
  } else {
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
      const ErrorOperands operands = {load(value, begin, count, v), load(eager, begin, count, e),
                                      load(truth, begin, count, t), scale_.rms, local.data()};
      compare_elements(operands, count, squares.data(), part.extremes);
      in_rows(begin, count, columns, [&](int64_t row, int64_t column, int64_t offset, int64_t length) {
        part.rows.add(next_row_ + row, sum_of(squares.data() + offset, length).squares);
        part.columns.add(column, squares.data() + offset, length);
      });
    }
  });
  ErrorExtremes total;
  for (const Part& part : parts) {
    total.add(part.extremes);
    rows_.add(part.rows);
    columns_.add(part.columns);
  }
  largest_ = std::max(largest_, total.largest);
  nan_ |= total.nan;
  scan_.scaled.max = std::max(scan_.scaled.max, total.max);
  scan_.scaled.local = std::max(scan_.scaled.local, total.local);
  scan_.max_abs = std::max(scan_.max_abs, total.max_abs);
  scan_.eager_max_abs = std::max(scan_.eager_max_abs, total.eager_max_abs);
  scan_.not_finite |= total.not_finite;
  scan_.specials_wrong |= total.specials_wrong;
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
    scan_.specials_wrong |= mask.logical_or(same).logical_not_().any().item<bool>();
    scan_.not_finite |= mask.logical_and(v.isfinite().logical_not_()).any().item<bool>();
    nan_ |= mask.logical_and(v.isnan()).any().item<bool>();
    const at::Tensor error = at::where(mask, v.sub(t).abs_(), zero), magnitude = at::where(mask, t.abs(), zero);
    const at::Tensor rows = scale_.rows.empty() ? at::full({1}, scale_.rms, zero.options())
                                                : on_device(scale_.rows, next_row_ + begin, count, device).unsqueeze(1);
    const at::Tensor scaled = error.div(magnitude.add(scale_.rms));
    const at::Tensor squares = scaled.square(), by_row = squares.sum(1).cpu(), by_column = squares.sum(0).cpu();
    for (int64_t i = 0; i < count; ++i) rows_.add(next_row_ + begin + i, by_row.const_data_ptr<double>()[i]);
    for (int64_t i = 0; i < shape_.columns; ++i) columns_.add(i, by_column.const_data_ptr<double>()[i]);
    scan_.scaled.max = std::max(scan_.scaled.max, largest_of(scaled));
    scan_.scaled.local = std::max(scan_.scaled.local, largest_of(error.div(magnitude.add(at::minimum(rows, columns)))));
    scan_.max_abs = std::max(scan_.max_abs, largest_of(error));
    scan_.eager_max_abs = std::max(scan_.eager_max_abs, largest_of(at::where(mask, e.sub(t).abs_(), zero)));
    if (mask.any().item<bool>()) largest_ = std::max(largest_, largest_of(magnitude) + scale_.rms);
  }
}

ErrorScan ErrorMeter::finish() const {
  ErrorScan scan = scan_;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (nan_) {
    scan.scaled = {nan, nan, nan, nan};
    scan.max_abs = nan;
  } else if (seen_ > 0) {
    scan.scaled.rms = root_of_mean(rows_.sum(), seen_);
    const double of_rows = rows_.median(shape_.columns), of_columns = columns_.median(shape_.rows);
    // One row says nothing of the others.
    scan.scaled.usual = shape_.rows == 1 ? of_columns : std::min(of_rows, of_columns);
  }
  if (scale_.counted > 0) scan.largest_weight = scale_.counted < seen_ ? std::max(1.0, largest_) : largest_;
  return scan;
}

ErrorScale scale_of(const at::Tensor& eager, const at::Tensor& truth) {
  ScaleBuilder builder(truth.sizes());
  builder.add(eager, truth);
  return builder.finish();
}

ErrorScan scan_errors(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth,
                      const ErrorScale& scale) {
  ErrorMeter meter(truth.sizes(), scale);
  meter.add(value, eager, truth);
  return meter.finish();
}

ScaledError worse(ScaledError a, ScaledError b) {
  return {std::max(a.max, b.max), std::max(a.rms, b.rms), std::max(a.local, b.local), std::max(a.usual, b.usual)};
}

ScaledError worst_of(const std::vector<ScaledError>& errors) {
  ScaledError worst;
  for (auto& error : errors) worst = worse(worst, error);
  return worst;
}

}  // namespace tilepilot::eval
