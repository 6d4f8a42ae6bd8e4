// Counts arithmetic while it is written as C++, since what C++ does with plain numbers nobody sees when it runs.
//
// Counts are of what the text says, less what every compiler for GPUs takes away:
// - what literals and variables of unrolled loops alone decide is a constant;
// - what depends on no variable of a loop is computed before the loop, unless it reads memory;
// - what was computed before in the same branch, or around it, is not computed again, unless it reads memory; what
//   reads memory is computed once a statement;
// - a product of floats in a sum is one multiply-add;
// - summands are added in the order in which loops make them known; constants among them are free in indices and
//   comparisons (a part of the instruction), and so is the step from an index to an address.
// Nothing are changes of sign and magnitude of floats (a part of the instruction that uses them), truth values joined
// by `and`, `or` and `not` (a part of the comparison), casts between integers, barriers and accesses. Both sides of a
// choice within an expression count, as a GPU computes both. A loop that is not unrolled adds and compares for each
// turn. Of foreign source that a program brings along nothing counts.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr.h"
#include "compiler/targets/c/operations.h"

namespace tilepilot::targets::c {

class OperationCount {
 public:
  void start_statement(Span span);
  // What was counted since the last call and belongs here: the number of its counter, or -1 if that is nothing.
  int64_t take();
  // By number; those without parts are empty.
  std::vector<OperationCounter> operation_counters() && { return std::move(operation_counters_); }

  // What follows, until it is closed, is a branch that not all threads may take, or the body of a loop. Before a loop
  // stands a counter of what it leaves unchanged: its number, with what was counted since the last one.
  void open_branch() { scopes_.push_back({}); }
  int64_t open_loop();
  void close();
  // A variable that is bound here, in the last case to a value that compilers know.
  void bind(const ir::Var& var) { vars_[var.get()] = fresh(false); }
  void bind(const ir::Var& var, const ir::Expr& value) { vars_[var.get()] = number(value); }
  void bind_constant(const ir::Var& var) { vars_[var.get()] = fresh(true); }
  bool is_constant(const ir::Expr& expr) { return values_[number(expr)].is_constant; }

  void add(Operation operation, int64_t count = 1) {
    if (paused_ == 0) written_[operation] += count;
  }
  // The expression's own operation, without those of its operands, which follow.
  void operation(const ir::Expr& expr);
  // Its rounding: to a small float and back, or to a small float alone.
  void rounding(const ir::Expr& expr, bool and_back);
  // One of `reciprocal_quotient`, whose reciprocal is computed before the loop.
  void reciprocal_quotient();
  // A function of the device's prelude that computes beside what it is named for.
  void call(std::string_view function);
  // Before they are written: the sum of indices times steps, which are numbers or products of extents, and the
  // comparisons of an index with the ends of its axis.
  void offset(const std::vector<ir::Expr>& indices, const std::vector<std::string>& steps);
  void bounds(const ir::Expr& index, const ir::Expr& extent, bool may_be_negative);
  // The expression is an index, or becomes one: constants among its summands are free.
  void use_as_index(const ir::Expr& expr);

  // While one lives nothing counts. A null count is none.
  class Pause {
   public:
    explicit Pause(OperationCount* count) : count_(count) {
      if (count_ != nullptr) ++count_->paused_;
    }
    ~Pause() {
      if (count_ != nullptr) --count_->paused_;
    }
    Pause(const Pause&) = delete;

   private:
    OperationCount* count_;
  };

 private:
  using Number = size_t;  // of a value: equal ones that memory has no part in have the same
  using Key = std::vector<uint64_t>;
  struct Value {
    size_t depth;  // of the scope that makes it known
    bool is_constant;
  };
  struct Scope {
    bool is_loop = false;
    int64_t before = -1;            // the counter before the loop
    std::vector<Number> counted{};  // what need not be computed again in here
  };
  struct Sum {
    std::vector<std::pair<Number, bool>> terms;  // and whether they are subtracted
    std::vector<Number> constants;
  };

  std::vector<OperationCounter> operation_counters_;
  Operations written_;
  Span span_;
  uint64_t statement_ = 0;
  int paused_ = 0;
  std::vector<Scope> scopes_{1};
  std::vector<Value> values_;
  std::map<Key, Number> numbers_;
  std::unordered_map<std::string, uint64_t> texts_;
  std::unordered_map<const ir::VarData*, Number> vars_;
  std::unordered_set<Number> counted_;
  // Of the statement: parts of sums and products in sums that count with these; what is used as an index.
  std::unordered_multiset<const ir::ExprNode*> absorbed_;
  std::unordered_set<const ir::ExprNode*> indices_;

  Number fresh(bool is_constant);
  Number number(Key key, const std::vector<Number>& parts);
  Number number(const ir::Expr& expr);
  Number number_of_load(const ir::Load& load);
  Number number_of_sum(const Sum& sum);
  // Without constants among its summands.
  Number number_of_index(const ir::Expr& expr);
  void collect(const ir::Expr& expr, bool is_subtracted, Sum& sum);
  void absorb(const ir::Expr& sum);

  bool is_new(Number value);
  size_t home(Number value) const;
  void count(Number value, Operation operation, int64_t times = 1);
  void count_once(Number value, Operation operation, int64_t times = 1) {
    if (!values_[value].is_constant && is_new(value)) count(value, operation, times);
  }
  void count_sum(Sum sum, bool is_index);
  void count_product(const ir::Expr& expr, const ir::Binary& product);
  void binary(Number value, const ir::Binary& node);
  void math(Number value, const ir::Math& node, ir::DType type);
  void cast(Number value, ir::DType from, ir::DType to);
};

}  // namespace tilepilot::targets::c
