#include "compiler/targets/gpu/facts/statements.h"

#include <unordered_map>

#include "compiler/ir/visit.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Region;
using ir::Stmt;
using Stmts = std::vector<Stmt>;

namespace {

class Again : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Expr rewrite(const Expr& expr) override {
    const auto* ref = ir::as<ir::VarRef>(expr);
    const auto found = ref ? own_.find(ref->var.get()) : own_.end();
    return found == own_.end() ? rewrite_children(expr) : ir::var_ref(found->second, expr->span);
  }
  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      ir::For result = *loop;
      for (ir::Var& var : result.vars) var = own(var);
      return rewrite_children(ir::make_stmt(std::move(result), stmt->span));
    }
    if (const auto* let = ir::as<ir::Let>(stmt)) {
      const Expr value = rewrite(let->value);
      return ir::make_stmt(ir::Let{own(let->var), value}, stmt->span);
    }
    return rewrite_children(stmt);
  }

 private:
  std::unordered_map<const ir::VarData*, ir::Var> own_;

  ir::Var own(const ir::Var& var) { return own_[var.get()] = ir::make_var(var->name, var->type); }
};

}  // namespace

Stmt call(std::string function, CallArguments arguments, Span span) {
  return ir::make_stmt(ir::ExternCall{std::move(function), std::move(arguments), nullptr}, span);
}

Region element(const Buffer& buffer, std::vector<Expr> indices, Span span) {
  std::vector<int64_t> ones(indices.size(), 1);
  return {buffer, std::move(indices), std::move(ones), span};
}

Stmt block(Stmts body, Span span) {
  return body.size() == 1 ? body[0] : ir::make_stmt(ir::Block{std::move(body)}, span);
}

Stmt unrolled(const ir::Var& var, int64_t count, Stmts body, Span span) {
  return ir::make_stmt(
      ir::For{ir::LoopKind::unrolled, {var}, {ir::int_imm(count)}, 0, ir::make_stmt(ir::Block{std::move(body)}, span)},
      span);
}

Stmts again(const Stmts& all) {
  Again with_own;
  Stmts result;
  for (const Stmt& stmt : all) result.push_back(with_own.rewrite(stmt));
  return result;
}

Region whole(const Buffer& buffer, Span span) {
  Region region{buffer, {}, {}, span};
  for (const Expr& extent : buffer->shape) {
    region.start.push_back(ir::int_imm(0));
    region.extent.push_back(ir::constant_int(extent).value_or(1));
  }
  return region;
}

bool is_whole(const Region& region) {
  for (size_t axis = 0; axis < region.extent.size(); ++axis)
    if (ir::constant_int(region.buffer->shape[axis]) != region.extent[axis]) return false;
  return true;
}

}  // namespace tilepilot::targets::gpu
