#include "compiler/targets/gpu/facts/guarded_rows.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/bounds.h"
#include "compiler/ir/search.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

// Whether the value may be computed where the condition does not hold, too: what it reads is there, and nobody changes
// it.
bool may_be_computed(const Expr& value, const ir::For& loop, const ir::BufferSet& written) {
  bool may = true;
  ir::walk(value, [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    if (load == nullptr) return;
    const bool of_loop = std::all_of(load->indices.begin(), load->indices.end(), [&](const Expr& index) {
      const auto* ref = ir::as<ir::VarRef>(index);
      return ir::constant_int(index) || (ref && std::count(loop.vars.begin(), loop.vars.end(), ref->var) == 1);
    });
    const bool is_checked = load->buffer->scope == Scope::global;
    may = may && (is_checked ? !written.contains(ir::memory_of(load->buffer)) : of_loop);
  });
  return may;
}

// Whether the condition may be asked once more, by threads that hold none of its fragment. One of constants alone says
// that most of the tile is padding, which need not be moved.
bool may_be_asked(const Expr& condition, const ir::For& loop, const ir::BufferSet& written) {
  bool may = false;
  ir::walk(condition, [&](const Expr& part) {
    const auto* ref = ir::as<ir::VarRef>(part);
    may = may || ir::as<ir::Load>(part) || (ref && std::count(loop.vars.begin(), loop.vars.end(), ref->var) == 0);
  });
  ir::each_effect(condition, [&](const ir::Buffer& buffer, bool) {
    may = may && buffer->scope != Scope::fragment && buffer->scope != Scope::local &&
          !(buffer->scope == Scope::global && written.contains(ir::memory_of(buffer)));
  });
  return may;
}

// The fragment whose elements have the loop's variables for indices; null if the value names none.
ir::Buffer held_by_elements(const Expr& value, const ir::For& loop) {
  ir::Buffer held;
  ir::walk(value, [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    if (load == nullptr || load->buffer->scope != Scope::fragment || load->indices.size() != loop.vars.size()) return;
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      const auto* ref = ir::as<ir::VarRef>(load->indices[k]);
      const auto length = ir::constant_int(load->buffer->shape[k]);
      if (!ref || ref->var != loop.vars[k] || !length || length != ir::constant_int(loop.extents[k])) return;
    }
    held = load->buffer;
  });
  return held;
}

}  // namespace

std::optional<GuardedRows> guarded_rows(const ir::For& loop, const ir::BufferSet& written) {
  const std::vector<Stmt> body = ir::statements(loop.body);
  const auto* guard = body.size() == 1 ? ir::as<ir::If>(body[0]) : nullptr;
  const std::vector<Stmt> then = guard && !guard->otherwise ? ir::statements(guard->then) : std::vector<Stmt>{};
  const auto* store = then.size() == 1 ? ir::as<ir::Store>(then[0]) : nullptr;
  if (store == nullptr || loop.kind != ir::LoopKind::parallel || loop.vars.size() < 2) return std::nullopt;
  const ir::BufferData& tensor = *store->buffer;
  if (tensor.scope != Scope::global || tensor.address || tensor.type.is_nibble()) return std::nullopt;
  const ir::Var& column = loop.vars.back();
  const auto names_column = [&](const Expr& expr) { return ir::mentions(expr, column); };
  const auto place = ir::affine(store->indices.back());
  const bool runs_along_rows = place && place->coefficient(column) == 1 &&
                               std::none_of(store->indices.begin(), store->indices.end() - 1, names_column);
  if (!runs_along_rows || names_column(guard->condition) || !may_be_asked(guard->condition, loop, written))
    return std::nullopt;
  const ir::Buffer held = held_by_elements(store->value, loop);
  if (!held || !may_be_computed(store->value, loop, written)) return std::nullopt;
  return GuardedRows{loop, *guard, *store, held};
}

}  // namespace tilepilot::targets::gpu
