// What an emitter knows about integer expressions: ranges of variables and values of lets, on top of ir/bounds.h. What
// is proven here keeps programs inside their memory, so it holds for what generated code computes, in 64 bits, also
// where that wraps: indices may be made of numbers that a tensor held.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::targets::c {

// Signed integers of constants, variables and plain arithmetic: what indices are made of. Generated code computes them
// in 64 bits, where they do not wrap; all other integers wrap as the IR says.
bool is_index_arithmetic(const ir::Expr& expr);

// The longest axis of a grid, or loop.
inline constexpr int64_t kLargestGrid = INT32_MAX;

class IntegerFacts {
 public:
  void set_range(const ir::Var& var, ir::Bounds range);
  void set_value(const ir::Var& var, ir::Expr value);

  // Ranges of the kernel's block variables and loops, and the values of its lets: each variable is bound in one place
  // only.
  void learn(const ir::Kernel& kernel);
  // Takes the program at its word: where it is wrong, so is what is proven.
  void trust(const ir::Kernel& kernel);

  // Of the value in the expression's type and, for index arithmetic, in 64 bits.
  ir::Bounds range(const ir::Expr& expr) const;
  // Of what an index or extent is, in 64 bits.
  ir::Bounds index_range(const ir::Expr& expr) const;
  // Whether index arithmetic, and that of the lets in it, is the same in 64 bits as with integers without end.
  bool is_exact(const ir::Expr& expr) const { return exact(expr).has_value(); }
  // Of index arithmetic only, as if it were exact. Lets are replaced by their values where these are affine themselves.
  std::optional<ir::Affine> affine(const ir::Expr& expr) const;
  // The whole int64 range if nothing is known.
  ir::Bounds range(const ir::Affine& form) const;
  bool is_never_negative(const ir::Expr& expr) const { return range(expr).lo >= 0; }
  // True if 0 <= index < extent for all values of the variables that what is assumed allows.
  bool in_bounds(const ir::Expr& index, const ir::Expr& extent) const;

  // Until `forget` the condition, a conjunction of exact comparisons, holds. Gives how many facts that added.
  size_t assume(const ir::Expr& condition);
  void forget(size_t facts);

  // With lets of index arithmetic replaced by their values.
  ir::Expr expand(const ir::Expr& expr) const;

 private:
  std::vector<ir::Var> known_;  // kept, so that no other variable gets the address of one that is known here
  ir::VarRanges ranges_;
  std::unordered_map<const ir::VarData*, ir::Expr> values_;
  std::unordered_map<const ir::VarData*, ir::Expr> conditions_;                           // of lets of type bool
  std::vector<ir::Affine> assumed_;                                                       // forms that are not negative
  mutable std::unordered_map<const ir::VarData*, std::optional<ir::Bounds>> exact_lets_;  // found before
  // Variables whose range a form of `assumed_` made smaller, in order, and what it was without.
  struct Narrowed {
    size_t fact;
    const ir::VarData* var;
    std::optional<ir::Bounds> before;
  };
  std::vector<Narrowed> narrowed_;

  // Its values in 64 bits; nullopt if it is no index arithmetic, or not exact as far as is known.
  std::optional<ir::Bounds> exact(const ir::Expr& expr) const;
  std::optional<ir::Bounds> exact(const ir::Var& var) const;
  std::optional<ir::Bounds> exact(const ir::Binary& node) const;
  // With those lets replaced that are exact and fit in their types.
  ir::Expr expand_exact(const ir::Expr& expr) const;
  ir::Expr expand_sums(const ir::Expr& expr) const;
  bool is_positive(const ir::Affine& form) const;
  void learn_extent(const ir::Var& var, const ir::Expr& extent);
  void narrow(size_t fact);
};

// Conjunctions of exact comparisons as forms that are not negative where they hold. False if there is another part:
// what was found before it still follows from the condition.
bool collect_comparisons(const IntegerFacts& facts, const ir::Expr& condition, std::vector<ir::Affine>& forms);

}  // namespace tilepilot::targets::c
