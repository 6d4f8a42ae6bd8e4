// The scan of errors (error_scan.h) on a GPU: each kernel passes over the elements once, where operators would write a
// tensor for each step. Atomics join the sums and maxima of all threads, so the order of sums is not the same every
// time. There is a pass for the sums of rows, which also sees what concerns single elements, and one for those of
// columns.
//
// Compiled at run time (gpu_scan.cpp), behind the text of scan_arguments.h. Nothing depends on the number of threads,
// so that tests run it as C++, in one.

namespace tilepilot::eval::scan {

__device__ inline double of_bits(unsigned bits) { return __uint_as_float(bits); }

__device__ inline double of_half(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  const double size = fraction * 0x1p-24;
  return sign != 0 ? -size : size;
}

__device__ inline double element(const ScanTensor& tensor, long long place) {
  if (tensor.type == kScanFloat) return static_cast<const float*>(tensor.data)[place];
  if (tensor.type == kScanDouble) return static_cast<const double*>(tensor.data)[place];
  const unsigned short bits = static_cast<const unsigned short*>(tensor.data)[place];
  return tensor.type == kScanHalf ? of_half(bits) : of_bits(static_cast<unsigned>(bits) << 16);
}

__device__ inline bool is_finite(double x) { return x - x == 0; }
__device__ inline bool is_nan(double x) { return x != x; }
__device__ inline double size_of(double x) { return x < 0 ? -x : x; }

// What one thread has seen. A NaN raises no maximum.
struct Seen {
  double maxima[kMaxima] = {}, sums[kSums] = {};
  long long counts[kCounts] = {};
  __device__ void raise(int which, double x) {
    if (x > maxima[which]) maxima[which] = x;
  }
};

struct SeeScale {
  // Gives the square of the truth, zero where truth or eager is not finite or a fill.
  __device__ double operator()(const ScanArguments& of, long long row, long long column, Seen& seen) const {
    const long long place = row * of.columns + column;
    const double truth = element(of.truth, place);
    if (!is_finite(truth) || !is_finite(element(of.eager, place))) return 0;
    ++seen.counts[kCounted];
    const double size = size_of(truth);
    if (size >= of.fill_limit) {
      ++seen.counts[kFills];
      return 0;
    }
    seen.raise(kLargest, size);
    return size * size;
  }
};

struct SeeError {
  // Gives the square of the scaled error, zero where truth or eager is not finite.
  __device__ double operator()(const ScanArguments& of, long long row, long long column, Seen& seen) const {
    const long long place = row * of.columns + column;
    const double value = element(of.value, place), eager = element(of.eager, place), truth = element(of.truth, place);
    if (!is_finite(truth) || !is_finite(eager)) {
      seen.counts[kSpecialsWrong] += !(value == eager || (is_nan(value) && is_nan(eager)));
      return 0;
    }
    const double size = size_of(truth), weight = size + of.rms, difference = value - truth, error = size_of(difference);
    const double of_row = of.row_scales ? of.row_scales[row] : of.rms;
    const double of_column = of.column_scales ? of.column_scales[column] : of.rms;
    const double scaled = error / weight, share = truth / weight, part = difference / weight;
    seen.counts[kNan] += is_nan(value);
    seen.counts[kNotFinite] += !is_finite(value);
    seen.counts[kSizeable] += size > of.least;
    seen.counts[kLost] += size > of.least && error > of.lost_part * size;
    seen.raise(kMax, scaled);
    seen.raise(kLocal, error / (size + (of_row < of_column ? of_row : of_column)));
    seen.raise(kMaxAbs, error);
    seen.raise(kEagerMaxAbs, size_of(eager - truth));
    seen.raise(kLargest, weight);
    if (size >= of.fill_limit) seen.raise(kFill, error / size);
    seen.sums[kAlong] += part * share;
    seen.sums[kSquares] += share * share;
    seen.sums[kSum] += part;
    seen.sums[kMagnitudes] += size_of(share);
    return scaled * scaled;
  }
};

__device__ inline unsigned mask_of(int lanes) {
  if (lanes == 32) return 0xffffffffu;
  const unsigned lane = threadIdx.x % 32;
  return ((1u << lanes) - 1) << lane / lanes * lanes;
}

// Over so many neighbouring lanes; the first one has the result.
template <class Number>
__device__ Number sum_over_lanes(Number number, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) number += __shfl_down_sync(mask_of(lanes), number, step, lanes);
  return number;
}

__device__ inline double greatest_of_lanes(double number, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) {
    const double other = __shfl_down_sync(mask_of(lanes), number, step, lanes);
    if (other > number) number = other;
  }
  return number;
}

// @pre number >= 0: then numbers are ordered as their bits are
__device__ inline void raise_to(double* kept, double number) {
  atomicMax(reinterpret_cast<long long*>(kept), __double_as_longlong(number));
}

__device__ inline void add_to(const ScanSums& sums, long long index, double squares, long long not_zero) {
  const long long place = (sums.first + index) >> sums.shift;
  atomicAdd(sums.squares + place, squares);
  if (sums.not_zero) atomicAdd(reinterpret_cast<unsigned long long*>(sums.not_zero) + place, not_zero);
}

// So many lanes for each piece of a row.
template <class See>
__device__ void scan_rows(const ScanArguments& of, const See& see) {
  const int lane = threadIdx.x % of.lanes, rows_at_once = blockDim.x / of.lanes;
  const long long pieces = (of.columns + of.segment - 1) / of.segment, items = of.rows * pieces;
  Seen seen;
  for (long long item = blockIdx.x * static_cast<long long>(rows_at_once) + threadIdx.x / of.lanes; item < items;
       item += gridDim.x * static_cast<long long>(rows_at_once)) {
    const long long row = item / pieces, begin = item % pieces * of.segment;
    const long long end = begin + of.segment < of.columns ? begin + of.segment : of.columns;
    double squares = 0;
    long long not_zero = 0;
    for (long long column = begin + lane; column < end; column += of.lanes) {
      const double square = see(of, row, column, seen);
      squares += square;
      not_zero += square > 0;
    }
    squares = sum_over_lanes(squares, of.lanes);
    not_zero = sum_over_lanes(not_zero, of.lanes);
    if (lane == 0) add_to(of.by_row, row, squares, not_zero);
  }
  // All threads of a warp are here.
  const int warp = blockDim.x < 32 ? blockDim.x : 32;
  const bool is_first = threadIdx.x % warp == 0;
  for (int i = 0; i < kMaxima; ++i) {
    const double most = greatest_of_lanes(seen.maxima[i], warp);
    if (is_first && most > 0) raise_to(of.maxima + i, most);
  }
  for (int i = 0; i < kSums; ++i) {
    const double sum = sum_over_lanes(seen.sums[i], warp);
    if (is_first && sum != 0) atomicAdd(of.sums + i, sum);
  }
  for (int i = 0; i < kCounts; ++i) {
    const long long count = sum_over_lanes(seen.counts[i], warp);
    if (is_first && count != 0) atomicAdd(reinterpret_cast<unsigned long long*>(of.counts) + i, count);
  }
}

// So many lanes side by side along rows, and the others of a block below them.
template <class See>
__device__ void scan_columns(const ScanArguments& of, const See& see) {
  const int beside = threadIdx.x % of.lanes, below = threadIdx.x / of.lanes, height = blockDim.x / of.lanes;
  const long long strips = (of.columns + of.lanes - 1) / of.lanes;
  const long long items = strips * ((of.rows + of.segment - 1) / of.segment);
  Seen unused;
  for (long long item = blockIdx.x; item < items; item += gridDim.x) {
    const long long column = item % strips * of.lanes + beside, begin = item / strips * of.segment;
    const long long end = begin + of.segment < of.rows ? begin + of.segment : of.rows;
    if (column >= of.columns || begin + below >= end) continue;
    double squares = 0;
    long long not_zero = 0;
    for (long long row = begin + below; row < end; row += height) {
      const double square = see(of, row, column, unused);
      squares += square;
      not_zero += square > 0;
    }
    add_to(of.by_column, column, squares, not_zero);
  }
}

extern "C" __global__ void scale_rows(ScanArguments of) { scan_rows(of, SeeScale{}); }
extern "C" __global__ void scale_columns(ScanArguments of) { scan_columns(of, SeeScale{}); }
extern "C" __global__ void error_rows(ScanArguments of) { scan_rows(of, SeeError{}); }
extern "C" __global__ void error_columns(ScanArguments of) { scan_columns(of, SeeError{}); }

}  // namespace tilepilot::eval::scan
