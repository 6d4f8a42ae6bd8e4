// Mathematical functions of tile IR in generated C++: their names in the prelude, and what each of them is.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilepilot::targets::c {

struct MathFunction {
  ir::MathFn function;
  std::string_view name;            // in the prelude
  bool has_fast_form = false;       // for float32; its name begins with `fast_`
  bool is_exact = false;            // the result needs no rounding: it is a value of the type already
  bool is_call = false;             // math.h.in of the prelude leaves it to the C library: of float32,
  bool is_call_of_doubles = false;  // and of float64
};
const MathFunction& function_of(ir::MathFn function);

// Operators that the prelude leaves to the C library.
bool is_call(ir::BinaryOp op);

// Names of functions and operators of float32 that are calls of the C library for each element, which no vector loop
// has: "sinh", "pow".
std::vector<std::string_view> library_names();

}  // namespace tilepilot::targets::c
