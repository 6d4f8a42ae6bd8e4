// Index expressions over the variables of a parallel loop, evaluated for many iterations while the compiler runs.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilepilot::passes {

// What casts between integers are made of.
const ir::Expr& without_casts(const ir::Expr& expr);

// The value of an integer expression for given values of `vars`; none if it mentions anything else.
class StaticIndex {
 public:
  static std::optional<StaticIndex> of(const ir::Expr& expr, const std::vector<ir::Var>& vars);
  // @pre one value a variable
  int64_t operator()(const std::vector<int64_t>& values) const;

 private:
  struct Step {
    enum class Kind : uint8_t { constant, variable, operation } kind;
    ir::BinaryOp op = ir::BinaryOp::add;
    int64_t value = 0;  // a constant, or the number of a variable
  };
  std::vector<Step> steps_;  // in postfix order

  bool add(const ir::Expr& expr, const std::vector<ir::Var>& vars);
};

}  // namespace tilepilot::passes
