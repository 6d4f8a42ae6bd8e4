// The functions of generated kernels for the interpreter, so that the two can be compared to the last bit. How accurate
// they are is tested against the C library in math_test.cpp.
#pragma once

#include "compiler/interpret/functions.h"

namespace tilepilot::testing {

const interpret::Functions& prelude_functions();

}  // namespace tilepilot::testing
