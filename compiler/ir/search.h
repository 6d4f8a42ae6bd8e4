// What stands in a statement or expression, anywhere below it.
#pragma once

#include <unordered_set>

#include "compiler/ir/visit.h"

namespace tilepilot::ir {

// Whether some statement, the given one included, is of one of the kinds, or is wanted.
bool contains(const Stmt& stmt, const std::function<bool(const Stmt&)>& wanted);
template <class... Kinds>
bool contains(const Stmt& stmt) {
  return contains(stmt, [](const Stmt& part) { return (std::holds_alternative<Kinds>(part->node) || ...); });
}

using Variables = std::unordered_set<const VarData*>;
bool mentions(const Expr& expr, const Variables& vars);
bool mentions(const Expr& expr, const Var& var);
bool mentions(const std::vector<Expr>& exprs, const Var& var);
bool mentions(const Stmt& stmt, const Var& var);
bool mentions(const Stmt& stmt, const Variables& vars);
// Whether a symbol stands for the extent of a tensor: those that do are from 0 to INT32_MAX, which is checked when they
// are bound. Others are strides.
bool is_extent(const Program& program, const Var& symbol);

// Whether it loads an element of any buffer.
bool has_loads(const Expr& expr);

// The variables that the statement and those below it bind, loops' own ones among them.
Variables bound_in(const Stmt& stmt);

// What a block consists of, or the statement alone.
std::vector<Stmt> statements(const Stmt& stmt);

}  // namespace tilepilot::ir
