// What an emitter knows about integer expressions: ranges of variables and values of lets, on top of ir/bounds.h.
// Indices and extents are taken as mathematical integers here: one that wraps has no meaning as an index.
#pragma once

#include <optional>
#include <unordered_map>

#include "compiler/ir/bounds.h"

namespace tilepilot::targets::cpu {

// Signed integers of constants, variables and plain arithmetic: what indices are made of. Generated code computes them
// in 64 bits, where they do not wrap; all other integers wrap as the IR says.
bool is_index_arithmetic(const ir::Expr& expr);

class IntegerFacts {
 public:
  void set_range(const ir::Var& var, ir::Bounds range) { ranges_[var.get()] = range; }
  void set_value(const ir::Var& var, ir::Expr value) { values_[var.get()] = std::move(value); }

  ir::Bounds range(const ir::Expr& expr) const;
  // Of index arithmetic only. Lets are replaced by their values.
  std::optional<ir::Affine> affine(const ir::Expr& expr) const;
  // The whole int64 range if nothing is known.
  ir::Bounds range(const ir::Affine& form) const;
  bool is_never_negative(const ir::Expr& expr) const { return range(expr).lo >= 0; }
  // True if 0 <= index < extent for all values of the variables.
  bool in_bounds(const ir::Expr& index, const ir::Expr& extent) const;

 private:
  ir::VarRanges ranges_;
  std::unordered_map<const ir::VarData*, ir::Expr> values_;

  ir::Expr expand(const ir::Expr& expr) const;
};

}  // namespace tilepilot::targets::cpu
