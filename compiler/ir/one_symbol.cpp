#include "compiler/ir/one_symbol.h"

#include "compiler/ir/visit.h"

namespace tilepilot::ir {

std::optional<int64_t> OneSymbol::solve(int64_t actual) const {
  int64_t rest = 0;
  if (__builtin_sub_overflow(actual, constant, &rest) || rest % coefficient != 0) return std::nullopt;
  const int64_t value = rest / coefficient;
  return value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<OneSymbol> one_symbol(const Expr& extent) {
  // Most are, and launches ask.
  if (const auto* symbol = as<VarRef>(extent)) return OneSymbol{symbol->var, 1, 0};
  const std::optional<Affine> form = affine(extent);
  if (!form || form->terms.size() != 1) return std::nullopt;
  const Affine::Term& term = form->terms[0];
  // Sizes grow with their symbols.
  if (term.coefficient < 1) return std::nullopt;
  return OneSymbol{term.var, term.coefficient, form->constant};
}

}  // namespace tilepilot::ir
