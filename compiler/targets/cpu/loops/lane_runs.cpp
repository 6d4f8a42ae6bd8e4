#include "compiler/targets/cpu/loops/lane_runs.h"

#include <algorithm>
#include <numeric>

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kShortestRun = 8;  // of shorter ones a vector has several

class WithinRun : public ir::Rewriter {
 public:
  WithinRun(const std::vector<RunPart>& parts, const ir::Var& lane) : lane_(lane) {
    for (const RunPart& part : parts) parts_.emplace(part.node, &part);
  }
  using ir::Rewriter::rewrite;

  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto found = parts_.find(expr.get());
    if (found == parts_.end()) return rewrite_children(expr);
    const ir::Expr uniform = ir::var_ref(found->second->in_run);
    if (found->second->is_quotient) return uniform;
    return ir::binary(ir::BinaryOp::add, uniform, ir::cast(ir::var_ref(lane_), expr->type));
  }

 private:
  const ir::Var& lane_;
  std::unordered_map<const ir::ExprNode*, const RunPart*> parts_;
};

}  // namespace

LaneRuns::LaneRuns(const c::IntegerFacts& facts, const ir::Var& lane, const ir::Stmt& body) : lane_(lane) {
  const ir::Variables inside = ir::bound_in(body);
  ir::Variables lets;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        const auto* let = std::get_if<ir::Let>(&stmt->node);
        if (let != nullptr && c::is_index_arithmetic(let->value)) lets.insert(let->var.get());
      },
      [](const ir::Expr&) {});
  std::unordered_set<const ir::ExprNode*> seen;
  const auto add = [&](const ir::Expr& expr) {
    const auto* node = std::get_if<ir::Binary>(&expr->node);
    const bool divides =
        node != nullptr && (node->op == ir::BinaryOp::floor_div || node->op == ir::BinaryOp::floor_mod);
    if (!divides || !c::is_index_arithmetic(expr) || !seen.insert(expr.get()).second) return;
    const auto number = facts.affine(node->left);
    const auto divisor = ir::constant_int(node->right);
    if (!number || number->coefficient(lane) != 1 || !divisor || *divisor < kShortestRun) return;
    const bool names_lets = std::any_of(number->terms.begin(), number->terms.end(),
                                        [&](const auto& term) { return lets.contains(term.var.get()); });
    if (names_lets) return;  // of divisions, which may differ within a run
    if (!facts.is_never_negative(node->left)) return;
    const bool is_quotient = node->op == ir::BinaryOp::floor_div;
    parts_.push_back({expr.get(), node->left, node->right, is_quotient, ir::make_var("run", expr->type)});
    aligned_ = std::gcd(std::gcd(aligned_, *divisor), number->constant);
    for (const auto& term : number->terms) {
      if (term.var == lane) continue;
      aligned_ = std::gcd(aligned_, term.coefficient);
      known_before_ = known_before_ && !inside.contains(term.var.get());
    }
  };
  ir::walk(
      body, [](const ir::Stmt&) {}, add);
}

ir::Expr LaneRuns::within(const ir::Expr& expr) const {
  return parts_.empty() ? expr : WithinRun(parts_, lane_).rewrite(expr);
}

ir::Stmt LaneRuns::within(const ir::Stmt& stmt) const {
  return parts_.empty() ? stmt : WithinRun(parts_, lane_).rewrite(stmt);
}

}  // namespace tilepilot::targets::cpu
