#include "compiler/targets/gpu/facts/dead_lets.h"

#include <unordered_set>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Stmt;

namespace {

// Variables that the statements of a list need, from the last to the first; lets that nobody needs are dropped.
class Needed {
 public:
  std::vector<Stmt> without_unused(const std::vector<Stmt>& list) {
    std::vector<Stmt> kept;
    for (size_t k = list.size(); k-- > 0;) {
      const auto* let = ir::as<ir::Let>(list[k]);
      if (let && !vars_.contains(let->var.get())) continue;
      Stmt stmt = list[k];
      if (const auto* loop = ir::as<ir::For>(stmt)) {
        ir::For inner = *loop;
        inner.body = block(without_unused(ir::statements(loop->body)), loop->body->span);
        for (const Expr& extent : inner.extents) note(extent);
        stmt = ir::make_stmt(std::move(inner), stmt->span);
      } else if (const auto* choice = ir::as<ir::If>(stmt)) {
        ir::If inner = *choice;
        inner.then = block(without_unused(ir::statements(choice->then)), choice->then->span);
        if (inner.otherwise)
          inner.otherwise = block(without_unused(ir::statements(choice->otherwise)), choice->otherwise->span);
        note(inner.condition);
        stmt = ir::make_stmt(std::move(inner), stmt->span);
      } else {
        ir::walk(
            stmt, [](const Stmt&) {}, [&](const Expr& part) { note_one(part); });
      }
      kept.insert(kept.begin(), stmt);
    }
    return kept;
  }

 private:
  std::unordered_set<const ir::VarData*> vars_;

  void note_one(const Expr& part) {
    if (const auto* ref = ir::as<ir::VarRef>(part)) vars_.insert(ref->var.get());
  }
  void note(const Expr& expr) {
    ir::walk(expr, [&](const Expr& part) { note_one(part); });
  }
};

}  // namespace

std::vector<Stmt> without_dead_lets(const std::vector<Stmt>& list) { return Needed().without_unused(list); }

}  // namespace tilepilot::targets::gpu
