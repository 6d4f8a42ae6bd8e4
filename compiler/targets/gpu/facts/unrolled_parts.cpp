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
    if (is_given(stmt)) {
      within_ = true;
      const Stmt result = rewrite_children(stmt);
      within_ = false;
      return result;
    }
    if (loop == nullptr || !(within_ ? names_elements(*loop) : selects_a_part(*loop))) return rewrite_children(stmt);
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
  bool within_ = false;  // one of the statements

  bool is_given(const Stmt& stmt) const {
    return std::find(statements_.begin(), statements_.end(), stmt) != statements_.end();
  }

  static bool may_be_written_out(const ir::For& loop) {
    const auto extent = ir::constant_int(loop.extents[0]);
    return loop.kind != ir::LoopKind::parallel && loop.kind != ir::LoopKind::pipelined && extent &&
           *extent <= kMostParts && !ir::contains(loop.body, is_jump);
  }

  bool selects_a_part(const ir::For& loop) const {
    return may_be_written_out(loop) && ir::contains(loop.body, [&](const Stmt& part) {
             return is_given(part) && ir::mentions(part, loop.vars[0]);
           });
  }

  static bool names_elements(const ir::For& loop) {
    if (!may_be_written_out(loop)) return false;
    bool names = false;
    const auto see = [&](const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
      names |= buffer->scope == ir::Scope::fragment && ir::mentions(indices, loop.vars[0]);
    };
    ir::walk(
        loop.body,
        [&](const Stmt& part) {
          if (const auto* store = ir::as<ir::Store>(part)) see(store->buffer, store->indices);
        },
        [&](const ir::Expr& part) {
          if (const auto* load = ir::as<ir::Load>(part)) see(load->buffer, load->indices);
        });
    return names;
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
