// Parts of linear indices that programs put together, `block * 256 + thread`, and take apart, `i // 56 % 64`: rewrites
// index arithmetic as sums of multiples of such parts.
#pragma once

#include <functional>

#include "compiler/targets/c/integer_facts.h"

namespace tilepilot::targets::cpu {

// number % high // low, where low divides high; high 0: number // low
struct IndexPart {
  ir::Var number;
  int64_t low = 1, high = 0;

  friend bool operator==(const IndexPart&, const IndexPart&) = default;
};

struct LinearIndices {
  std::unordered_map<const ir::VarData*, IndexPart> variables;  // what they are parts of
  std::unordered_map<const ir::VarData*, int64_t> extents;      // of numbers; 0: not known here
};

// Rewrites index arithmetic so that of the numbers only parts are left, as few as there can be; `write` says what
// stands for one.
class IndexPartRewriter {
 public:
  using Write = std::function<ir::Expr(const IndexPart&)>;
  IndexPartRewriter(const c::IntegerFacts& facts, const LinearIndices& numbering, Write write)
      : facts_(facts), numbering_(numbering), write_(std::move(write)) {}

  bool is_about_numbers(const ir::Expr& expr) const;
  ir::Expr rewrite(const ir::Expr& expr);
  // The number that the expression is, as a whole, or null.
  ir::Var number(const ir::Expr& expr);
  // False if some expression had no such form, or may leave its type.
  bool succeeded() const { return succeeded_; }

 private:
  struct Term {
    IndexPart part;  // number null: `other` instead
    ir::Expr other;
    ir::Bounds values;  // of `other`
    int64_t coefficient;
  };
  struct Sum {
    std::vector<Term> terms;
    int64_t constant = 0;
  };

  const c::IntegerFacts& facts_;
  const LinearIndices& numbering_;
  const Write write_;
  bool succeeded_ = true;

  Sum sum(const ir::Expr& expr);
  Sum product(const ir::Binary& node, const ir::Expr& expr);
  Sum division(const ir::Binary& node, const ir::Expr& expr);
  Sum opaque(const ir::Expr& expr);
  Sum scaled(Sum sum, int64_t factor);
  void add(Sum& to, const Sum& more, int64_t factor);
  void add(Sum& to, Term term);
  bool join(Sum& sum) const;
  ir::Bounds range(const Sum& sum) const;
  ir::Bounds range(const Term& term) const;
  ir::Expr build(const Sum& sum, ir::DType type);
};

}  // namespace tilepilot::targets::cpu
