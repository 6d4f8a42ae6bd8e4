// Building IR expressions with the obvious simplified: constants computed, x+0, x*1, x*0 and the like removed. It keeps
// staged IR readable and makes tile extents constants; deeper simplification is the passes' work.
#pragma once

#include <functional>
#include <optional>

#include "compiler/ir/expr.h"

namespace tilepilot::stage {

// Operands have one type, as ir::binary wants them.
ir::Expr fold_binary(ir::BinaryOp op, ir::Expr left, ir::Expr right, Span span);
ir::Expr fold_negation(ir::Expr operand, Span span);
ir::Expr fold_cast(ir::Expr value, ir::DType type, Span span);
// As a program asks for it: an operation of 8 or 16 bits, which is computed in 32, is cut to its own type, too.
ir::Expr explicit_cast(ir::Expr value, ir::DType type, Span span);
ir::Expr fold_select(ir::Expr condition, ir::Expr then, ir::Expr otherwise, Span span);

// The value that a let variable stands for, or null.
using Definition = std::function<ir::Expr(const ir::Var&)>;

// left - right, if both are linear in the same terms and only a constant remains.
std::optional<int64_t> constant_difference(const ir::Expr& left, const ir::Expr& right, const Definition& definition);

// The value of an integer expression, given those of its variables; nullopt if one is missing or a part is no sum,
// product, quotient, remainder, minimum or maximum.
std::optional<int64_t> evaluate_integer(const ir::Expr& expr,
                                        const std::function<std::optional<int64_t>(const ir::Var&)>& value_of);

}  // namespace tilepilot::stage
