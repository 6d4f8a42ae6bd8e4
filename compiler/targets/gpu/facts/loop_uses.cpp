#include "compiler/targets/gpu/facts/loop_uses.h"

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/passes/algebra/static_index.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Stmt;
using layout::Shape;

Shape shape_of(const ir::Buffer& buffer) {
  Shape shape;
  for (const Expr& extent : buffer->shape) shape.push_back(ir::constant_int(extent).value_or(1));
  return shape;
}

std::vector<Use> uses_of(const Stmt& stmt) {
  std::vector<Use> uses;
  ir::walk(
      stmt,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) uses.push_back({store->buffer, store->indices, true});
        if (const auto* atomic = ir::as<ir::Atomic>(part))
          uses.push_back({atomic->element.buffer, atomic->element.start, true});
      },
      [&](const Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) uses.push_back({load->buffer, load->indices});
      });
  return uses;
}

const Stmt& ParallelLoop::body() const { return ir::as<ir::For>(stmt)->body; }

std::optional<ParallelLoop> parallel_loop(const Stmt& stmt, int64_t times) {
  const auto& loop = *ir::as<ir::For>(stmt);
  ParallelLoop result{stmt, times, loop.vars, {}, uses_of(stmt)};
  for (const Expr& extent : loop.extents) {
    const auto size = ir::constant_int(extent);
    if (!size || *size < 1) return std::nullopt;
    result.extents.push_back(*size);
  }
  return result;
}

int64_t vector_elements(const ParallelLoop& loop) {
  int bits = 0;
  const ir::Var& last = ir::as<ir::For>(loop.stmt)->vars.back();
  const bool any =
      std::any_of(loop.uses.begin(), loop.uses.end(), [&](const Use& use) { return ir::mentions(use.indices, last); });
  for (const Use& use : loop.uses)
    if (use.buffer->scope != ir::Scope::local && (!any || ir::mentions(use.indices, last)))
      bits = std::max(bits, use.buffer->scope == ir::Scope::fragment ? 0 : int{use.buffer->type.bits});
  if (bits == 0) bits = loop.uses.empty() ? 32 : int{loop.uses.front().buffer->type.bits};
  return std::max(1, 128 / std::max(8, bits));
}

std::optional<Pattern> pattern_of(const Use& use, const std::vector<ir::Var>& vars) {
  Pattern pattern;
  std::vector<bool> seen(vars.size(), false);
  const Shape shape = shape_of(use.buffer);
  for (size_t axis = 0; axis < use.indices.size(); ++axis) {
    const auto* ref = ir::as<ir::VarRef>(passes::without_casts(use.indices[axis]));
    const auto found = ref == nullptr ? vars.end() : std::find(vars.begin(), vars.end(), ref->var);
    if (found == vars.end()) {
      if (shape[axis] != 1) return std::nullopt;
      pattern.emplace_back();
      continue;
    }
    const auto number = static_cast<size_t>(found - vars.begin());
    if (seen[number]) return std::nullopt;
    seen[number] = true;
    pattern.emplace_back(number);
  }
  return pattern;
}

size_t variable_count(const Use& use, const ParallelLoop& loop) {
  const auto pattern = pattern_of(use, loop.vars);
  if (!pattern) return 0;
  return static_cast<size_t>(
      std::count_if(pattern->begin(), pattern->end(), [](const auto& v) { return v.has_value(); }));
}

}  // namespace tilepilot::targets::gpu
