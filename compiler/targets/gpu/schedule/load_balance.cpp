#include "compiler/targets/gpu/schedule/load_balance.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/schedule/pipelined_loop.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Stmt;
using ir::Var;

namespace {

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

}  // namespace tilepilot::targets::gpu
