// The functions of one argument that need a library. Targets have approximations of their own; who compares with one to
// the last bit passes a table of that target's.
#pragma once

#include <array>

#include "compiler/ir/expr.h"

namespace tilepilot::interpret {

struct Function {
  float (*single)(float);
  double (*wide)(double);
};
// By MathFn. From `abs` on they are exact, and part of the arithmetic of elements.
using Functions = std::array<Function, size_t(ir::MathFn::abs)>;

// The C library's.
const Functions& library_functions();

}  // namespace tilepilot::interpret
