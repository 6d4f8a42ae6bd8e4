#include "compiler/targets/cpu/loops/index_lets.h"

#include "compiler/ir/visit.h"
#include "compiler/targets/c/integer_facts.h"

namespace tilepilot::targets::cpu {
namespace {

class WithoutIndexLets : public ir::Rewriter {
 public:
  explicit WithoutIndexLets(const std::function<bool(const ir::Expr&)>& stays) : stays_(stays) {}
  using ir::Rewriter::rewrite;

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* let = std::get_if<ir::Let>(&stmt->node);
    if (let == nullptr) return rewrite_children(stmt);
    const ir::Expr value = rewrite(let->value);
    if (!c::is_index_arithmetic(value) || stays_(value)) return ir::make_stmt(ir::Let{let->var, value}, stmt->span);
    values_.emplace(let->var.get(), value);
    return nullptr;
  }
  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* ref = std::get_if<ir::VarRef>(&expr->node);
    const auto found = ref != nullptr ? values_.find(ref->var.get()) : values_.end();
    return found == values_.end() ? rewrite_children(expr) : found->second;
  }

 private:
  const std::function<bool(const ir::Expr&)>& stays_;
  std::unordered_map<const ir::VarData*, ir::Expr> values_;
};

}  // namespace

ir::Stmt without_index_lets(const ir::Stmt& stmt, const std::function<bool(const ir::Expr&)>& stays) {
  return WithoutIndexLets(stays).rewrite(stmt);
}

}  // namespace tilepilot::targets::cpu
