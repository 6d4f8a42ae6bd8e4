// The values of lets in the place of their names. A name holds its value in the name's type, where sums wrap, while
// arithmetic of indices is computed in 64 bits (targets/c/integer_facts.h): a value that may wrap is put where only
// sums and products are made of it, and not below a quotient, a remainder or a comparison, which would see the
// difference.
#pragma once

#include <unordered_map>

#include "compiler/targets/c/integer_facts.h"

namespace tilepilot::targets::gpu {

// Whether it is a variable, an element or a constant, or one of these in another type.
bool is_no_arithmetic(const ir::Expr& value);

// Sums and products, which are alike whether their operands wrapped before or the result does.
bool makes_sums(ir::BinaryOp op);

// Of blocks, loops, lets and named threads.
c::IntegerFacts facts_of(const ir::Kernel& kernel);

class LetValues {
 public:
  explicit LetValues(const c::IntegerFacts& facts) : facts_(facts) {}

  bool empty() const { return values_.empty(); }
  void add(const ir::Let& let);
  // With the values that may stand there.
  ir::Expr named(const ir::Expr& expr) const;
  ir::Stmt named(const ir::Stmt& stmt) const;

 private:
  struct Value {
    ir::Var var;
    ir::Expr value;
    bool fits;  // it does not wrap
  };
  const c::IntegerFacts& facts_;
  std::unordered_map<const ir::VarData*, Value> values_;

  template <class Node>
  Node substituted(const Node& node) const;
};

}  // namespace tilepilot::targets::gpu
