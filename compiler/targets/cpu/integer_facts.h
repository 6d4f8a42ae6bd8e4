// What an emitter knows about integer expressions: ranges of variables and values of lets, on top of ir/bounds.h.
// Indices and extents are taken as mathematical integers here: one that wraps has no meaning as an index.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::targets::cpu {

// Signed integers of constants, variables and plain arithmetic: what indices are made of. Generated code computes them
// in 64 bits, where they do not wrap; all other integers wrap as the IR says.
bool is_index_arithmetic(const ir::Expr& expr);

// The longest axis of a grid, or loop.
inline constexpr int64_t kLargestGrid = INT32_MAX;

class IntegerFacts {
 public:
  void set_range(const ir::Var& var, ir::Bounds range) { ranges_[var.get()] = range; }
  void set_value(const ir::Var& var, ir::Expr value) { values_[var.get()] = std::move(value); }

  // Ranges of the kernel's block variables and loops, and the values of its lets: each variable is bound in one place
  // only.
  void learn(const ir::Kernel& kernel);

  ir::Bounds range(const ir::Expr& expr) const;
  // Of index arithmetic only. Lets are replaced by their values where these are affine themselves.
  std::optional<ir::Affine> affine(const ir::Expr& expr) const;
  // The whole int64 range if nothing is known.
  ir::Bounds range(const ir::Affine& form) const;
  bool is_never_negative(const ir::Expr& expr) const { return range(expr).lo >= 0; }
  // True if 0 <= index < extent for all values of the variables that what is assumed allows.
  bool in_bounds(const ir::Expr& index, const ir::Expr& extent) const;

  // Until `forget` the condition, a conjunction of comparisons, holds. Gives how many facts that added.
  size_t assume(const ir::Expr& condition);
  void forget(size_t facts) { assumed_.resize(assumed_.size() - facts); }

  // With lets of index arithmetic replaced by their values.
  ir::Expr expand(const ir::Expr& expr) const;

 private:
  ir::VarRanges ranges_;
  std::unordered_map<const ir::VarData*, ir::Expr> values_;
  std::vector<ir::Affine> assumed_;  // forms that are not negative

  void learn_loop(const ir::Var& var, const ir::Expr& extent);
  ir::Expr expand_sums(const ir::Expr& expr) const;
  bool is_positive(const ir::Affine& form) const;
};

// Conjunctions of comparisons as forms that are not negative where they hold. False if there is another part: what was
// found before it still follows from the condition.
bool collect_comparisons(const IntegerFacts& facts, const ir::Expr& condition, std::vector<ir::Affine>& forms);

}  // namespace tilepilot::targets::cpu
