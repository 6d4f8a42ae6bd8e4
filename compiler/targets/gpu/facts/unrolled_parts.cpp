#include "compiler/targets/gpu/facts/unrolled_parts.h"

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::Stmt;

namespace {

constexpr int64_t kMostParts = 64;

bool is_jump(const Stmt& stmt) { return ir::as<ir::Break>(stmt) || ir::as<ir::Continue>(stmt); }

class Unroller : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Unroller(const std::vector<Stmt>& statements) : statements_(statements) {}

  bool changed = false;

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr || !selects_a_part(*loop)) return rewrite_children(stmt);
    changed = true;
    const Stmt body = rewrite(loop->body);
    const ir::Var& var = loop->vars[0];
    std::vector<Stmt> all;
    for (int64_t k = 0; k < *ir::constant_int(loop->extents[0]); ++k) {
      const Stmt one = ir::substitute(
          body, [&](const ir::Var& other) { return other == var ? ir::int_imm(k, var->type, stmt->span) : nullptr; });
      for (const Stmt& part : again(ir::statements(one))) all.push_back(part);
    }
    return ir::make_stmt(ir::Block{std::move(all)}, stmt->span);
  }

 private:
  const std::vector<Stmt>& statements_;

  bool selects_a_part(const ir::For& loop) const {
    const bool serial = loop.kind == ir::LoopKind::serial || loop.kind == ir::LoopKind::unrolled;
    const auto extent = ir::constant_int(loop.extents[0]);
    if (!serial || !extent || *extent > kMostParts || ir::contains(loop.body, is_jump)) return false;
    return ir::contains(loop.body, [&](const Stmt& part) {
      return std::find(statements_.begin(), statements_.end(), part) != statements_.end() &&
             ir::mentions(part, loop.vars[0]);
    });
  }
};

}  // namespace

std::optional<ir::Kernel> with_parts_unrolled(const ir::Kernel& kernel, const std::vector<Stmt>& statements) {
  Unroller unroller(statements);
  ir::Kernel result = kernel;
  result.body = unroller.rewrite(kernel.body);
  if (!unroller.changed) return std::nullopt;
  return result;
}

}  // namespace tilepilot::targets::gpu
