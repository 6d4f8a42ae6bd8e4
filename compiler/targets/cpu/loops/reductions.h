// Elements that all iterations of a loop update with the same operation, `s[0] += x[i]`: a reduction. Each lane of a
// vector keeps a partial result, which are put together after the loop; sums of floats are done in another order.
#pragma once

#include "compiler/ir/effects.h"
#include "compiler/targets/c/context.h"
#include "compiler/targets/cpu/loops/loop_body.h"

namespace tilepilot::targets::cpu {

struct Reduction {
  ir::Buffer buffer;
  std::vector<ir::Expr> indices;  // with lets replaced by their values
  ir::BinaryOp op;                // add, max, min, bit_or
  bool is_atomic = false;         // others update the element at the same time
};

// Of iterations that differ in these variables. What they update is in bounds, and named by these updates alone.
std::vector<Reduction> find_reductions(const c::Context& context, const std::vector<ir::Var>& vars,
                                       const ir::Stmt& body);
// Whether nothing changes where no iteration has an update: none of what others might write meanwhile, and not from
// what is no number to what is.
bool may_have_no_update(const Reduction& reduction);
ir::BufferSet buffers_of(const std::vector<Reduction>& reductions);

// Atomic updates of these elements as stores.
ir::Stmt with_plain_updates(const ir::Stmt& body, const std::vector<Reduction>& reductions);

// While it lives, what names the elements is written as variables, which it declares. `body` has plain updates.
class ReductionVariables {
 public:
  ReductionVariables(c::Context& context, const std::vector<Reduction>& reductions, const ir::Stmt& body);
  ~ReductionVariables();
  ReductionVariables(const ReductionVariables&) = delete;

  // " reduction(+: sum)", for `omp simd`.
  std::string clauses() const;
  // Puts the results where they belong.
  void store() const;

 private:
  c::Context& context_;
  const std::vector<Reduction>& reductions_;
  std::vector<std::string> names_;
  std::vector<const ir::ExprNode*> loads_;
  std::vector<const ir::StmtNode*> stores_;
};

// Whether iterations of a loop that is no parallel one may run at the same time: no iteration names an element that
// another one writes, but for reductions.
bool iterations_are_independent(const c::Context& context, const ir::For& loop);

}  // namespace tilepilot::targets::cpu
