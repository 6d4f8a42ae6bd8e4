// Integer expressions as sums of multiples of arbitrary parts: what no fixed pattern catches. Two rewrites: terms that
// cancel or repeat, and quotients and remainders of sums whose parts the divisor divides.
#pragma once

#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/expr.h"

namespace tilepilot::passes {

struct Sum {
  struct Term {
    ir::Expr part;  // neither a sum nor a multiple
    int64_t coefficient;
  };
  std::vector<Term> terms;  // no two parts are equal
  int64_t constant = 0;
  int leaves = 0;    // terms and constants as written
  bool fits = true;  // all numbers in 64 bits
};
Sum sum_of(const ir::Expr& e);

// A sum with its repeated terms put together, where that makes it shorter; else null. Holds under wrapping.
ir::Expr collect_terms(const ir::Expr& sum);

// For `sum // c` and `sum % c`, c > 0: drops or splits off the multiples of c, e.g. (i * 8 + j) // 8 is i if j < 8.
// Null if there are none, or if the sum may wrap.
ir::Expr divide_sum(const ir::Expr& quotient, const ir::VarRanges& ranges);

}  // namespace tilepilot::passes
