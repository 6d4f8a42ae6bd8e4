// What a launch of a kernel asks of memory and arithmetic, counted from the tile program as it is written: the numbers
// that a measured time is held against. Not what a target makes of it: no index arithmetic, no layout, no cache.
#pragma once

#include <string>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

struct LaunchWork {
  int64_t blocks = 0;
  // Of global memory, in bytes. Requested: by all blocks together; within a parallel loop each element counts once for
  // each place in the text that names it. Least: of those, what must move if each tensor is read once and written once.
  double requested_bytes = 0, least_bytes = 0;
  double product_flops = 0;  // of tile products, 2 m n k each
  double other_flops = 0;    // floating-point operations on elements; a step of a reduction is one
  double functions = 0;      // of elements: exponentials, powers, roots, sines
  std::string product_type;  // of the first product's operands: "float16"; empty: there is none
  // False: some of it depends on data (a `while`, a condition on elements), or is the mean of several blocks.
  bool exact = true;
};

// `values`: of scalar parameters and symbols.
LaunchWork launch_work(const Kernel& kernel, const VarRanges& values);

}  // namespace tilepilot::ir
