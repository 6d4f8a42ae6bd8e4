// Division by reciprocal, of many numbers by the same one: by its reciprocal and a correction, which together round as
// a division does, where neither the divisor nor any of the numbers is extreme. The prelude says when
// (`has_safe_reciprocal`, `is_safe_dividend`); what is not so is divided as ever.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cuda {

// Divisions of float32 below an unrolled loop whose divisor is the same in all iterations, and whose dividend is known
// before the loop begins: it may be computed there, too. Empty if there are too few to pay.
std::vector<ir::Expr> reciprocal_divisions(const ir::For& loop);

// A test of all of them, a variable of the text.
std::string write_reciprocal_test(c::Context& context, const ir::For& loop, const std::vector<ir::Expr>& divisions);

}  // namespace tilepilot::targets::cuda
