// Binding of a call's arguments to a program's parameters: data pointers, scalars, symbolic extents.
#pragma once

#include "compiler/ir/bounds.h"
#include "compiler/runtime/kernel.h"

namespace tilepilot::runtime {

struct BoundArguments {
  std::vector<void*> buffers;    // in parameter order
  std::vector<int64_t> scalars;  // scalar parameters (floating ones as the bits of a double), then symbols
  ir::VarRanges values;          // of integer scalars and symbols
};

// Errors: `bad_kernel_argument`.
Result<BoundArguments> bind_arguments(const ir::Program& program, const std::vector<Argument>& arguments, Span span);

// The value of an integer expression over bound variables.
int64_t evaluate(const ir::Expr& expr, const ir::VarRanges& values);

}  // namespace tilepilot::runtime
