// Extents and strides of parameters that determine a symbol: those that are linear in it and mention no other.
#pragma once

#include "compiler/ir/bounds.h"

namespace tilepilot::ir {

// coefficient * symbol + constant, such as `n`, `n * 4` or `n + 1`.
struct OneSymbol {
  Var symbol;
  int64_t coefficient = 1, constant = 0;

  // The symbol's value where the extent is `actual`; nullopt if no number that is not negative gives it.
  std::optional<int64_t> solve(int64_t actual) const;
};

// Nullopt if the extent has several symbols, none, or is not linear in it.
std::optional<OneSymbol> one_symbol(const Expr& extent);

}  // namespace tilepilot::ir
