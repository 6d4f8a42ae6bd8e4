// Integer expressions as sums of multiples of arbitrary parts: what no fixed pattern catches. Two rewrites: terms that
// cancel or repeat, and quotients and remainders of sums whose parts the divisor divides.
#pragma once

#include "compiler/ir/bounds.h"
#include "compiler/ir/expr.h"

namespace tilepilot::passes {

// A sum with its repeated terms put together, where that makes it shorter; else null. Holds under wrapping.
ir::Expr collect_terms(const ir::Expr& sum);

// For `sum // c` and `sum % c`, c > 0: drops or splits off the multiples of c, e.g. (i * 8 + j) // 8 is i if j < 8.
// Null if there are none, or if the sum may wrap.
ir::Expr divide_sum(const ir::Expr& quotient, const ir::VarRanges& ranges);

}  // namespace tilepilot::passes
