// Integer arithmetic as the IR defines it.
#pragma once

#include <cstdint>

#include "compiler/ir/dtype.h"

namespace tilepilot::ir {

__extension__ using Wide = __int128;

// The value of an integer type (or bool: 0, 1) that is congruent to `value`; uint64 as the int64 of the same bits.
int64_t wrap(Wide value, DType type);

// Towards minus infinity, as Python's `//` and `%`. The divisor is not 0.
constexpr Wide floor_div(Wide a, Wide b) {
  const Wide quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
constexpr Wide floor_mod(Wide a, Wide b) { return a - floor_div(a, b) * b; }

}  // namespace tilepilot::ir
