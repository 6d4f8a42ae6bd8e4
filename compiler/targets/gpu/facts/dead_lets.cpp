#include "compiler/targets/gpu/facts/dead_lets.h"

#include <unordered_set>

#include "compiler/ir/effects.h"
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

// Local buffers that statements need, and the statements that compute something else than what is not needed.
class NeededBuffers {
 public:
  explicit NeededBuffers(const std::vector<Stmt>& list) {
    size_t before = 0;
    do {
      before = needed_.size();
      for (const Stmt& stmt : list) note(stmt);
    } while (needed_.size() != before);
  }

  std::vector<Stmt> alive(const std::vector<Stmt>& list) const {
    std::vector<Stmt> kept;
    for (const Stmt& stmt : list) {
      if (!is_alive(stmt) && !ir::as<ir::Let>(stmt)) continue;
      const auto inside = [&](const Stmt& body) {
        return body ? ir::make_stmt(ir::Block{alive(ir::statements(body))}, body->span) : nullptr;
      };
      if (const auto* loop = ir::as<ir::For>(stmt)) {
        ir::For inner = *loop;
        inner.body = inside(loop->body);
        kept.push_back(ir::make_stmt(std::move(inner), stmt->span));
      } else if (const auto* choice = ir::as<ir::If>(stmt)) {
        kept.push_back(
            ir::make_stmt(ir::If{choice->condition, inside(choice->then), inside(choice->otherwise)}, stmt->span));
      } else if (const auto* list_inside = ir::as<ir::Block>(stmt)) {
        kept.push_back(ir::make_stmt(ir::Block{alive(list_inside->body)}, stmt->span));
      } else {
        kept.push_back(stmt);
      }
    }
    return kept;
  }

 private:
  ir::BufferSet needed_;

  bool is_alive(const Stmt& stmt) const {
    if (const auto* store = ir::as<ir::Store>(stmt))
      return store->buffer->scope != ir::Scope::local || needed_.contains(store->buffer.get());
    const auto any = [&](const Stmt& body) {
      const std::vector<Stmt> all = body ? ir::statements(body) : std::vector<Stmt>{};
      return std::any_of(all.begin(), all.end(), [&](const Stmt& part) { return is_alive(part); });
    };
    if (const auto* list = ir::as<ir::Block>(stmt))
      return std::any_of(list->body.begin(), list->body.end(), [&](const Stmt& part) { return is_alive(part); });
    if (const auto* loop = ir::as<ir::For>(stmt)) return any(loop->body);
    if (const auto* choice = ir::as<ir::If>(stmt)) return any(choice->then) || any(choice->otherwise);
    return ir::as<ir::Let>(stmt) == nullptr;
  }

  void note(const Stmt& stmt) {
    const auto note_expr = [&](const Expr& expr) {
      ir::each_effect(expr, [&](const ir::Buffer& buffer, bool) {
        if (buffer->scope == ir::Scope::local) needed_.insert(buffer.get());
      });
    };
    if (const auto* let = ir::as<ir::Let>(stmt)) return note_expr(let->value);  // unless nobody names it, which is rare
    if (!is_alive(stmt)) return;
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) note(part);
    } else if (const auto* loop = ir::as<ir::For>(stmt)) {
      for (const Expr& extent : loop->extents) note_expr(extent);
      for (const Stmt& part : ir::statements(loop->body)) note(part);
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      note_expr(choice->condition);
      for (const Stmt& body : {choice->then, choice->otherwise})
        for (const Stmt& part : body ? ir::statements(body) : std::vector<Stmt>{}) note(part);
    } else {
      ir::walk(
          stmt, [](const Stmt&) {},
          [&](const Expr& part) {
            if (const auto* load = ir::as<ir::Load>(part); load && load->buffer->scope == ir::Scope::local)
              needed_.insert(load->buffer.get());
          });
    }
  }
};

}  // namespace

std::vector<Stmt> without_dead_lets(const std::vector<Stmt>& list) { return Needed().without_unused(list); }

std::vector<Stmt> without_dead_values(const std::vector<Stmt>& list) {
  const std::vector<Stmt> named = without_dead_lets(list);
  return without_dead_lets(NeededBuffers(named).alive(named));
}

}  // namespace tilepilot::targets::gpu
