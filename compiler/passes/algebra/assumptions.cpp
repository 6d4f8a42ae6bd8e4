#include "compiler/passes/algebra/assumptions.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::Var;

bool is_assumption(const Stmt& stmt) {
  const auto* check = ir::as<ir::Check>(stmt);
  return check && check->assumed;
}

class Collector : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* let = ir::as<ir::Let>(stmt)) {
      depths_[let->var.get()] = depth_;
      if (!let->var->type.is_int() || ir::has_loads(let->value)) return stmt;
      values_[let->var.get()] = expanded(let->value, values_);
      const Expr sum = expanded(let->value, sums_);
      if (ir::affine(sum)) sums_[let->var.get()] = sum;
      return stmt;
    }
    if (const auto* block = ir::as<ir::Block>(stmt)) return rewrite_block(stmt, *block);
    if (const auto* loop = ir::as<ir::For>(stmt)) return within(stmt, loop->vars);
    if (ir::as<ir::Break>(stmt) || ir::as<ir::Continue>(stmt)) {
      // What follows in the loop may not run, so that its promises may not be given.
      for (size_t depth = loop_; depth < leaves_.size(); ++depth) leaves_[depth] = true;
      return stmt;
    }
    const bool has_bodies =
        ir::as<ir::If>(stmt) || ir::as<ir::While>(stmt) || ir::as<ir::Roles>(stmt) || ir::as<ir::Concurrent>(stmt);
    return has_bodies ? within(stmt, {}) : stmt;
  }

  std::vector<Expr> assumptions;
  std::vector<DroppedAssumption> dropped;

 private:
  size_t depth_ = 0, loop_ = 0;
  std::vector<bool> leaves_{false};  // by depth: whether its rest may be left out
  std::unordered_map<const ir::VarData*, size_t> depths_;
  using Values = std::unordered_map<const ir::VarData*, Expr>;
  Values values_, sums_;  // of lets; those that are sums of multiples of variables

  static Expr expanded(const Expr& expr, const Values& values) {
    return ir::substitute(expr, [&](const Var& var) -> Expr {
      const auto value = values.find(var.get());
      return value == values.end() ? nullptr : value->second;
    });
  }

  Stmt within(const Stmt& stmt, const std::vector<Var>& vars) {
    leaves_.push_back(false);
    ++depth_;
    const bool is_loop = ir::as<ir::For>(stmt) || ir::as<ir::While>(stmt);
    const size_t around = is_loop ? std::exchange(loop_, depth_) : loop_;
    for (const Var& var : vars) depths_[var.get()] = depth_;
    const Stmt result = rewrite_children(stmt);
    loop_ = around;
    --depth_;
    leaves_.pop_back();
    return result;
  }

  Stmt rewrite_block(const Stmt& stmt, const ir::Block& block) {
    std::vector<Stmt> kept;
    bool changed = false;
    for (const Stmt& part : block.body) {
      if (is_assumption(part)) {
        add(ir::as<ir::Check>(part)->condition, part->span);
        changed = true;
        continue;
      }
      kept.push_back(rewrite(part));
      changed |= kept.back() != part;
    }
    return changed ? ir::make_stmt(ir::Block{std::move(kept)}, stmt->span) : stmt;
  }

  void add(const Expr& given, Span span) {
    const Expr condition = expanded(given, values_);  // a definition on a condition says nothing of what it is made of
    size_t bound = 0;                                 // the depth at which the last of its variables is
    ir::walk(condition, [&](const Expr& part) {
      const auto* ref = ir::as<ir::VarRef>(part);
      const auto depth = ref ? depths_.find(ref->var.get()) : depths_.end();
      if (depth != depths_.end()) bound = std::max(bound, depth->second);
    });
    if (ir::has_loads(condition))
      dropped.push_back({span, "it is about elements that are loaded: give them a name first"});
    else if (bound != depth_ || leaves_[depth_])
      dropped.push_back({span, "what it is about is known further out than the condition or loop that it stands in"});
    else  // As what is to be proven is written: with quotients (`thread // 32`) by their names.
      assumptions.push_back(expanded(given, sums_));
  }
};

}  // namespace

std::vector<DroppedAssumption> dropped_assumptions(const ir::Program& program) {
  std::vector<DroppedAssumption> all;
  for (const ir::Kernel& kernel : program.kernels) {
    Collector collector;
    collector.rewrite(kernel.body);
    all.insert(all.end(), collector.dropped.begin(), collector.dropped.end());
  }
  return all;
}

ir::Program collect_assumptions(const ir::Program& program) {
  ir::Program result = program;
  for (ir::Kernel& kernel : result.kernels) {
    bool any = false;
    ir::walk(
        kernel.body, [&](const Stmt& stmt) { any |= is_assumption(stmt); }, [](const Expr&) {});
    if (!any) continue;
    Collector collector;
    kernel.body = collector.rewrite(kernel.body);
    kernel.assumptions = std::move(collector.assumptions);
  }
  return result;
}

}  // namespace tilepilot::passes
