// What is known about integer expressions: the interval of their values when variables run over known intervals, and
// their decomposition into a sum of multiples of variables. Sound under wrapping: an expression that may leave its
// type's range has the whole range as its interval.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilepilot::ir {

// Both ends included. bool counts as [0, 1]; of uint64 only values below 2^63 are ever known.
struct Bounds {
  int64_t lo, hi;

  bool is_constant() const { return lo == hi; }
  bool within(Bounds outer) const { return outer.lo <= lo && hi <= outer.hi; }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// All values of an integer type or bool.
Bounds type_bounds(DType type);

// Variables not in the map may have any value of their type.
using VarRanges = std::unordered_map<const VarData*, Bounds>;

// Of an expression of integer or bool type; a comparison that is decided has equal ends.
Bounds bounds(const Expr& expr, const VarRanges& ranges);
// False if neither the expression nor any integer below it leaves the range of its type.
bool may_wrap(const Expr& expr, const VarRanges& ranges);
// `ranges`, narrowed by knowing that the bool expression `condition` is `holds`.
VarRanges assume(const Expr& condition, bool holds, VarRanges ranges);

// constant + sum of coefficient * variable, over mathematical integers: the expression's value wherever it does not
// wrap. Variables in order of first appearance, coefficients not 0.
struct Affine {
  struct Term {
    Var var;
    int64_t coefficient;
  };
  std::vector<Term> terms;
  int64_t constant = 0;

  int64_t coefficient(const Var& var) const;  // 0 if absent
  bool is_constant() const { return terms.empty(); }
};

// Nullopt if the expression is not affine (or a coefficient leaves 64 bits).
std::optional<Affine> affine(const Expr& expr);
std::optional<Affine> difference(const Affine& a, const Affine& b);
// Nullopt if an end leaves 64 bits.
std::optional<Bounds> bounds(const Affine& affine, const VarRanges& ranges);

}  // namespace tilepilot::ir
