// The scalar operations of the planner: one row each, with how tile programs and PyTorch spell them. Every element-wise
// ATen operator becomes a few of these.
#pragma once

#include <string_view>

namespace tilepilot::agent::builtin {

enum class ScalarOp {
  add,
  sub,
  mul,
  div,
  floor_div,
  remainder,
  maximum,
  minimum,
  pow,
  neg,
  exp,
  exp2,
  log,
  log2,
  log10,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  asin,
  acos,
  atan,
  tanh,
  erf,
  sigmoid,
  abs,
  floor,
  ceil,
  round,
  trunc,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_not,
  select,  // condition, then, otherwise
  cast,    // to the primitive's dtype
};

struct ScalarOpInfo {
  ScalarOp op;
  std::string_view name;  // as ATen has it
  int arity;
  std::string_view tile;   // an infix token if `precedence` > 0 and arity is 2, else a function of `T`
  std::string_view torch;  // likewise, else a function of `torch`
  int precedence;          // Python's, higher binds tighter; 0: a call
  int cost;                // in units of an addition
};

const ScalarOpInfo& info(ScalarOp op);

inline constexpr int kCallPrecedence = 100;

}  // namespace tilepilot::agent::builtin
