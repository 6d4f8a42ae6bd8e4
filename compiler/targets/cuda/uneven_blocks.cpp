#include "compiler/targets/cuda/uneven_blocks.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/pipelined_loop.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

// Blocks of equal work that follow each other: heads of attention, each of which reads tensors of its own. Measured on
// an H200: 32 heads of 4096 x 128.
constexpr int64_t kMostBeside = 32;

// What tells how often pipelined loops run, and what tells that.
class Causes {
 public:
  explicit Causes(const ir::Kernel& kernel) : kernel_(kernel) {
    ir::walk(
        kernel.body, [&](const Stmt& stmt) { note(stmt); }, [](const Expr&) {});
  }

  std::vector<size_t> axes() {
    for (size_t at = 0; at < open_.size(); ++at) {
      const Expr expr = open_[at];
      if (ir::has_loads(expr)) return {};
      ir::walk(expr, [&](const Expr& part) {
        const auto* ref = ir::as<ir::VarRef>(part);
        if (ref && seen_.insert(ref->var.get()).second) follow(ref->var);
      });
    }
    if (!known_) return {};
    std::sort(axes_.begin(), axes_.end());
    return axes_;
  }

 private:
  const ir::Kernel& kernel_;
  std::unordered_map<const ir::VarData*, std::vector<Expr>> told_by_;
  ir::Variables unknown_, seen_;
  std::vector<Expr> open_;
  std::vector<size_t> axes_;
  bool known_ = true;

  void note(const Stmt& stmt) {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const Var& var : loop->vars) told_by_[var.get()] = loop->extents;
      if (ir::contains(stmt, is_pipelined)) open_.insert(open_.end(), loop->extents.begin(), loop->extents.end());
    } else if (const auto* let = ir::as<ir::Let>(stmt)) {
      told_by_[let->var.get()] = {let->value};
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      if (ir::contains(stmt, is_pipelined)) open_.push_back(choice->condition);
    } else if (const Var bound = ir::bound_variable(*stmt)) {
      unknown_.insert(bound.get());
    }
  }

  void follow(const Var& var) {
    known_ = known_ && !unknown_.contains(var.get());
    if (const auto found = told_by_.find(var.get()); found != told_by_.end())
      open_.insert(open_.end(), found->second.begin(), found->second.end());
    const auto& all = kernel_.block_vars;
    const auto axis = std::find(all.begin(), all.end(), var);
    if (axis != all.end()) axes_.push_back(static_cast<size_t>(axis - all.begin()));
  }
};

}  // namespace

std::vector<size_t> axes_of_work(const ir::Kernel& kernel) { return Causes(kernel).axes(); }

std::vector<Stmt> name_by_work(const ir::Kernel& kernel, const std::vector<size_t>& axes, const Expr& number) {
  const Span span = kernel.body->span;
  std::vector<Stmt> out;
  const auto op = [&](BinaryOp which, const Expr& a, const Expr& b) { return ir::binary(which, a, b, span); };
  const auto extent = [&](size_t axis) { return ir::cast(kernel.grid[axis], ir::kInt32); };
  const auto let = [&](const char* name, const Expr& value) {
    const Var var = ir::make_var(name, ir::kInt32);
    out.push_back(ir::make_stmt(ir::Let{var, value}, span));
    return ir::var_ref(var);
  };
  std::vector<size_t> others;
  for (size_t axis = 0; axis < kernel.grid.size(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) others.push_back(axis);
  // The bound is known by itself; what follows from it needs no checks.
  const auto define = [&](const std::vector<size_t>& which, Expr rest) {
    for (size_t k = 0; k < which.size(); ++k) {
      const Expr all = extent(which[k]), last = op(BinaryOp::sub, all, ir::int_imm(1));
      const Expr value = k + 1 == which.size() ? op(BinaryOp::min, rest, last) : op(BinaryOp::floor_mod, rest, all);
      const Var& var = kernel.block_vars[which[k]];
      out.push_back(ir::make_stmt(ir::Let{var, ir::cast(value, var->type)}, span));
      rest = op(BinaryOp::floor_div, rest, all);
    }
  };
  const auto count = [&](const std::vector<size_t>& which) {
    Expr all = ir::int_imm(1);
    for (const size_t axis : which)
      all = ir::constant_int(all) == 1 ? extent(axis) : op(BinaryOp::mul, all, extent(axis));
    return all;
  };
  const Expr beside = count(others);
  int64_t constant = 1;
  bool all_known = true;
  for (const size_t axis : others) {
    const auto one = ir::constant_int(kernel.grid[axis]);
    all_known = all_known && one;
    constant *= one.value_or(1);
  }
  if (all_known && constant <= kMostBeside) {
    define(others, op(BinaryOp::floor_mod, number, beside));
    define(axes, op(BinaryOp::floor_div, number, beside));
    return out;
  }
  const Expr most = ir::int_imm(kMostBeside), in_section = op(BinaryOp::mul, count(axes), most);
  const Expr section = let("section", op(BinaryOp::floor_div, number, in_section));
  const Expr within = let("within", op(BinaryOp::floor_mod, number, in_section));
  const Expr first = op(BinaryOp::mul, section, most), left = op(BinaryOp::min, op(BinaryOp::sub, beside, first), most);
  const bool even = all_known && constant % kMostBeside == 0;
  const Expr width = let("width", even ? most : op(BinaryOp::max, left, ir::int_imm(1)));
  define(others, op(BinaryOp::add, first, op(BinaryOp::floor_mod, within, width)));
  define(axes, op(BinaryOp::floor_div, within, width));
  return out;
}

}  // namespace tilepilot::targets::cuda
