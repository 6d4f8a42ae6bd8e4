// What the kernels of scan_kernels.cu get. This is a part of their text, too, so there is nothing in it but this.
#ifndef TILEPILOT_SCAN_ARGUMENTS
#define TILEPILOT_SCAN_ARGUMENTS

namespace tilepilot::eval {

enum ScanType : int { kScanDouble, kScanFloat, kScanHalf, kScanBfloat16 };

// A tensor without gaps.
struct ScanTensor {
  const void* data;
  ScanType type;
};

// Sums by row, or by column, of so many neighbours together; null: none are wanted.
struct ScanSums {
  double* squares;
  long long* not_zero;  // null: not counted
  long long first;      // what is added to the index of a row or column
  int shift;            // 2^shift neighbours have one sum
};

// By place in `maxima`, `sums` and `counts` of ScanArguments. Maxima are at least 0.
enum ScanMaximum : int { kMax, kLocal, kMaxAbs, kEagerMaxAbs, kLargest, kFill, kMaxima };
enum ScanSum : int { kAlong, kSquares, kSum, kMagnitudes, kSums };
enum ScanCount : int { kLost, kSizeable, kNan, kNotFinite, kSpecialsWrong, kCounted, kFills, kCounts };

struct ScanArguments {
  ScanTensor value, eager, truth;  // rows x columns; scales need no value
  long long rows, columns;
  int lanes;          // threads side by side along a row: a power of two, at most 32 and the threads of a block
  long long segment;  // columns, for the sums of rows, or rows, for those of columns, that are added up at a time
  double least, fill_limit, lost_part;
  double rms;
  const double *row_scales, *column_scales;  // null: rms
  ScanSums by_row, by_column;
  double *maxima, *sums;
  long long* counts;
};

}  // namespace tilepilot::eval

#endif
