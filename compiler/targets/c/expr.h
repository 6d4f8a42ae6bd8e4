// C++ for expressions of the IR. Values of the 16-bit floating-point types are held in `float`, rounded after each
// operation. Integers that are only used as indices, extents or in their comparisons are computed in 64 bits.
#pragma once

#include <string>

#include "compiler/ir/expr.h"
#include "compiler/targets/c/context.h"

namespace tilepilot::targets::c {

// The value, in the type's computed form (bool for booleans).
std::string value(Context& context, const ir::Expr& expr);
// The value, ready to be assigned to an element of a buffer of the expression's type.
std::string element(Context& context, const ir::Expr& expr);
// Of a variable that names an element of a small float: the statement that keeps its bits beside its value, for where
// it is stored again (conversions there and back are exact, but for NaN and infinities); else "".
std::string keep_stored(Context& context, const ir::Let& let);
// What `element` is rounded from, of small floats.
std::string unrounded(Context& context, const ir::Expr& expr);
// An integer expression in the index type.
std::string index(Context& context, const ir::Expr& expr);
// Whether some 64-bit part of an integer expression may have a value that the index type cannot hold.
bool leaves_index_type(const Context& context, const ir::Expr& expr);
// The same, in parentheses where it could not stand in a sum, or in a product.
std::string summand(Context& context, const ir::Expr& expr);
std::string factor(Context& context, const ir::Expr& expr);
// An affine form, as index() would print it.
std::string index(Context& context, const ir::Affine& form);

}  // namespace tilepilot::targets::c
