#include "agent/builtin/import/scalar_ops.h"

#include <array>

namespace tilepilot::agent::builtin {

namespace {

using enum ScalarOp;

constexpr std::array kTable = {
    ScalarOpInfo{add, "add", 2, "+", "+", 50, 1},
    ScalarOpInfo{sub, "sub", 2, "-", "-", 50, 1},
    ScalarOpInfo{mul, "mul", 2, "*", "*", 60, 1},
    ScalarOpInfo{div, "div", 2, "/", "/", 60, 4},
    ScalarOpInfo{floor_div, "floor_divide", 2, "//", "//", 60, 6},
    ScalarOpInfo{remainder, "remainder", 2, "%", "%", 60, 6},
    ScalarOpInfo{maximum, "maximum", 2, "max", "maximum", 0, 1},
    ScalarOpInfo{minimum, "minimum", 2, "min", "minimum", 0, 1},
    ScalarOpInfo{pow, "pow", 2, "pow", "pow", 0, 20},
    ScalarOpInfo{neg, "neg", 1, "-", "-", 70, 1},
    ScalarOpInfo{exp, "exp", 1, "exp", "exp", 0, 10},
    ScalarOpInfo{exp2, "exp2", 1, "exp2", "exp2", 0, 8},
    ScalarOpInfo{log, "log", 1, "log", "log", 0, 12},
    ScalarOpInfo{log2, "log2", 1, "log2", "log2", 0, 12},
    ScalarOpInfo{log10, "log10", 1, "log10", "log10", 0, 12},
    ScalarOpInfo{log1p, "log1p", 1, "log1p", "log1p", 0, 14},
    ScalarOpInfo{sqrt, "sqrt", 1, "sqrt", "sqrt", 0, 5},
    ScalarOpInfo{rsqrt, "rsqrt", 1, "rsqrt", "rsqrt", 0, 5},
    ScalarOpInfo{sin, "sin", 1, "sin", "sin", 0, 14},
    ScalarOpInfo{cos, "cos", 1, "cos", "cos", 0, 14},
    ScalarOpInfo{tan, "tan", 1, "tan", "tan", 0, 18},
    ScalarOpInfo{sinh, "sinh", 1, "sinh", "sinh", 0, 18},
    ScalarOpInfo{cosh, "cosh", 1, "cosh", "cosh", 0, 18},
    ScalarOpInfo{asin, "asin", 1, "asin", "asin", 0, 18},
    ScalarOpInfo{acos, "acos", 1, "acos", "acos", 0, 18},
    ScalarOpInfo{atan, "atan", 1, "atan", "atan", 0, 18},
    ScalarOpInfo{tanh, "tanh", 1, "tanh", "tanh", 0, 14},
    ScalarOpInfo{erf, "erf", 1, "erf", "erf", 0, 16},
    ScalarOpInfo{sigmoid, "sigmoid", 1, "sigmoid", "sigmoid", 0, 14},
    ScalarOpInfo{abs, "abs", 1, "abs", "abs", 0, 1},
    ScalarOpInfo{floor, "floor", 1, "floor", "floor", 0, 1},
    ScalarOpInfo{ceil, "ceil", 1, "ceil", "ceil", 0, 1},
    ScalarOpInfo{round, "round", 1, "round", "round", 0, 1},
    ScalarOpInfo{trunc, "trunc", 1, "trunc", "trunc", 0, 1},
    ScalarOpInfo{eq, "eq", 2, "==", "==", 30, 1},
    ScalarOpInfo{ne, "ne", 2, "!=", "!=", 30, 1},
    ScalarOpInfo{lt, "lt", 2, "<", "<", 30, 1},
    ScalarOpInfo{le, "le", 2, "<=", "<=", 30, 1},
    ScalarOpInfo{gt, "gt", 2, ">", ">", 30, 1},
    ScalarOpInfo{ge, "ge", 2, ">=", ">=", 30, 1},
    ScalarOpInfo{logical_and, "logical_and", 2, "and", "logical_and", 20, 1},
    ScalarOpInfo{logical_or, "logical_or", 2, "or", "logical_or", 10, 1},
    ScalarOpInfo{logical_not, "logical_not", 1, "not ", "logical_not", 25, 1},
    ScalarOpInfo{select, "where", 3, "if_then_else", "where", 0, 1},
    ScalarOpInfo{cast, "to", 1, "cast", "to", 0, 1},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (static_cast<size_t>(kTable[i].op) != i) return false;
  return true;
}
static_assert(in_order(), "one row for each operation, in the order of the enumeration");

}  // namespace

const ScalarOpInfo& info(ScalarOp op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace tilepilot::agent::builtin
