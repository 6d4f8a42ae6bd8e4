// The scan of errors by kernels (scan_kernels.cu): sums and maxima of tensors on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "eval/worker/truth/compare/error_chunk.h"
#include "eval/worker/truth/compare/error_scan.h"
#include "eval/worker/truth/compare/scan_arguments.h"

namespace tilepilot::eval {

// Who runs the kernels; tests do it in one thread.
class ScanKernels {
 public:
  virtual ~ScanKernels() = default;
  // The threads of a block, a multiple of `lanes` or 1, and so many blocks at most.
  virtual int threads() const = 0;
  virtual int blocks() const = 0;
  // Behind what the stream of LibTorch's operators has to do. False: it cannot be launched.
  virtual bool run(const std::string& kernel, const ScanArguments& arguments) const = 0;
};

// The kernels and what they are given, as CUDA C++.
std::string scan_kernels_text();
// Those of the GPU that LibTorch uses, compiled when they are first asked for; null where they cannot be: without
// NVRTC.
const ScanKernels* gpu_scan_kernels();
// The same, if they look at all of these tensors: of such a size and type, on a GPU, and without gaps; else null.
const ScanKernels* scan_kernels_for(std::initializer_list<at::Tensor> tensors, const RowShape& shape);

struct ScaleSums {
  SquaredElements seen;
  std::vector<double> row_squares, column_squares;
  std::vector<int64_t> rows_not_zero, columns_not_zero;
};
// `with_columns`: theirs, too. nullopt: the kernels could not be launched. @pre each is rows x columns, without gaps,
// as scan_kernels_for wants them
std::optional<ScaleSums> sum_scales(const ScanKernels& kernels, const at::Tensor& eager, const at::Tensor& truth,
                                    const RowShape& shape, double fill_limit, bool with_columns);

struct ErrorSums {
  ErrorExtremes seen;
  std::vector<double> row_squares, column_squares;  // 2^shift neighbours in one
};
// Rows count from `first_row` on, as in `scale`; 2^row_shift of them have one sum.
struct ErrorPlaces {
  int64_t first_row = 0, rows = 0;  // of the whole
  int row_shift = 0, column_shift = 0;
};
std::optional<ErrorSums> sum_errors(const ScanKernels& kernels, const at::Tensor& value, const at::Tensor& eager,
                                    const at::Tensor& truth, const RowShape& shape, const ErrorScale& scale,
                                    const ErrorPlaces& places);

}  // namespace tilepilot::eval
