// How far values are from the truth, found in one pass over memory and in parts: outputs of millions of elements are
// compared many times for each verdict, and need not be there in whole. Tensors on a GPU are looked at there.
#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <vector>

#include "eval/graph/tolerance.h"
#include "eval/worker/truth/compare/error_chunk.h"

namespace tilepilot::eval {

// What errors of an output are divided by (docs/verification.md): |truth| + rms(truth), and by the local rule the least
// rms of the slices through an element in place of the tensor's. Only elements where truth and eager are finite count,
// and no fills: elements far beyond all others, as are -1e9 in masked scores.
struct ErrorScale {
  double rms = 1;  // of the truth; 1 if that is zero everywhere, so that errors stay finite
  int64_t counted = 0;
  double fill_limit = std::numeric_limits<double>::infinity();  // elements as large are fills
  // Least rms of the slices through a row (a vector along the last axis), and of those at a place along it. Empty: no
  // slice holds enough elements, half of them not zero. Of a tensor of few elements those at a place have at most the
  // least of them for a scale: each is held against itself.
  std::vector<double> rows, columns;
};

struct ErrorScan {
  ScaledError scaled;  // NaN if a value is NaN
  double max_abs = 0, eager_max_abs = 0;
  double largest_weight = 1;    // max of |truth| + rms(truth)
  bool not_finite = false;      // a value is not finite where it should be
  bool specials_wrong = false;  // where truth or eager is not finite, a value is not what eager gives
};

enum class ScanPlace {
  nearest,   // what is on the processor is read there, what is on a GPU by kernels if that can be (gpu_scan.h)
  operators  // by LibTorch's operators, as elsewhere
};

// A tensor as rows along its last axis of more than one element.
struct RowShape {
  explicit RowShape(at::IntArrayRef sizes);
  std::vector<int64_t> leading;  // extents of the other axes, without those of 1
  int64_t rows = 1, columns = 1;
};

// So many of the numbers, from `begin` on.
at::Tensor on_device(const std::vector<double>& numbers, int64_t begin, int64_t count, c10::Device device);

class ScaleBuilder {
 public:
  explicit ScaleBuilder(at::IntArrayRef sizes, ScanPlace place = ScanPlace::nearest,
                        double fill_limit = std::numeric_limits<double>::infinity());
  // The next rows. Both of one shape; `truth` is float64, `eager` of any floating type.
  void add(const at::Tensor& eager, const at::Tensor& truth);
  ErrorScale finish() const;
  double largest() const { return largest_; }  // of the elements that count

 private:
  void add_on_host(const at::Tensor& eager, const at::Tensor& truth);
  bool add_by_kernels(const at::Tensor& eager, const at::Tensor& truth);  // false: they cannot
  void add_by_operators(const at::Tensor& eager, const at::Tensor& truth);
  void see_places(const at::Tensor& eager, const at::Tensor& truth);

  RowShape shape_;
  ScanPlace place_;
  double fill_limit_, largest_ = 0;
  std::vector<double> least_;  // of a tensor of few elements, by place along rows: not zero
  int64_t next_row_ = 0;
  std::vector<SliceSum> rows_, columns_;  // columns only where they are long enough
  int64_t counted_ = 0, fills_ = 0;
};

// Sums of squares of many numbers in a row, so many neighbours together that there are no more than `kMostGroups`.
class GroupedSquares {
 public:
  explicit GroupedSquares(int64_t count = 0);
  void add(int64_t index, double square) { sums_[static_cast<size_t>(index >> shift_)] += square; }
  void add(int64_t first, const double* squares, int64_t count);  // neighbours
  void add(const GroupedSquares& other);
  // What others have summed by group: 2^shift() neighbours.
  void add(const std::vector<double>& sums);
  int shift() const { return shift_; }
  double sum() const;
  // The median over the groups, each divided by its number of elements if each number stands for so many.
  double median(int64_t elements) const;

 private:
  static constexpr int64_t kMostGroups = 1 << 14;

  int64_t count_;
  int shift_ = 0;
  std::vector<double> sums_;
};

class ErrorMeter {
 public:
  // `scale` must live as long.
  ErrorMeter(at::IntArrayRef sizes, const ErrorScale& scale, ScanPlace place = ScanPlace::nearest);
  // The next rows, after so many that are left out.
  void add(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth);
  void leave_out(int64_t rows) { next_row_ += rows; }
  ErrorScan finish() const;

 private:
  void add_on_host(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth);
  // Of the elements of a row from a column on, by the local rule.
  void local_scales(int64_t row, int64_t column, int64_t count, double* scales) const;
  bool add_by_kernels(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth);
  void add_by_operators(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth);

  RowShape shape_;
  const ErrorScale& scale_;
  ScanPlace place_;
  int64_t next_row_ = 0, seen_ = 0;
  ErrorExtremes seen_values_;
  GroupedSquares rows_, columns_;
};

ErrorScale scale_of(const at::Tensor& eager, const at::Tensor& truth);
ErrorScan scan_errors(const at::Tensor& value, const at::Tensor& eager, const at::Tensor& truth,
                      const ErrorScale& scale);

// The greater ones of each.
ScaledError worse(ScaledError a, ScaledError b);
ScaledError worst_of(const std::vector<ScaledError>& errors);

// Of the output's scale: of an output of which eager errs by as much eager itself knows little.
inline constexpr double kNoise = 0.05;

}  // namespace tilepilot::eval
