// Small floating types by definition: which number each code stands for, and the code of the number next to a given
// one. Of those below 32 bits found by search in a table of all of them, not by arithmetic on bits.
#pragma once

#include "compiler/ir/dtype.h"

namespace tilepilot::interpret {

double decode(uint32_t code, ir::DType type);
// Ties go to the even code; in float8_e8m0, whose codes are exponents, and in tfloat32 away from zero.
uint32_t encode(double value, ir::DType type);

}  // namespace tilepilot::interpret
