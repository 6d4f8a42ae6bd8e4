// Operations on constants, with exactly the meaning they have at run time (ir/expr.h). What the host cannot compute
// exactly (transcendental functions) or has no meaning (division by 0) is left alone.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace tilepilot::passes {

// The literal that `expr` stands for, if its operands are literals; else null.
ir::Expr fold(const ir::Expr& expr);

// The same for integers or bools `a` and `b` of one type: what `a op b` is, nullopt if it has no meaning.
std::optional<int64_t> fold(ir::BinaryOp op, int64_t a, int64_t b, ir::DType type);

// The value nearest to `value` that a floating-point type has, ties to even.
double round_to(double value, ir::DType type);

}  // namespace tilepilot::passes
