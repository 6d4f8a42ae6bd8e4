#include "compiler/passes/element_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& part) { found |= std::holds_alternative<Load>(part->node); });
  return found;
}

namespace {

bool is_straight(const Stmt& body) {
  bool straight = true;
  walk(
      body,
      [&](const Stmt& s) {
        straight &= !std::holds_alternative<For>(s->node) && !std::holds_alternative<While>(s->node);
        straight &= !std::holds_alternative<Break>(s->node) && !std::holds_alternative<Continue>(s->node);
        straight &= !std::holds_alternative<Atomic>(s->node) && !std::holds_alternative<Barrier>(s->node);
        straight &= !std::holds_alternative<Check>(s->node) && !std::holds_alternative<Print>(s->node);
      },
      [](const Expr&) {});
  return straight;
}

std::optional<ElementForm> of_loop(const For& n) {
  if (n.kind != LoopKind::parallel || !is_straight(n.body)) return std::nullopt;
  ElementForm form{n.vars, {}, {n.body}, true};
  for (const Expr& extent : n.extents) {
    const auto size = constant_int(extent);
    if (!size || *size <= 1) return std::nullopt;
    form.extents.push_back(*size);
  }
  if (const auto* block = std::get_if<Block>(&n.body->node)) form.body = block->body;
  return form;
}

// Variables for the axes of the box whose extent is not 1.
ElementForm over_box(const std::vector<int64_t>& extents) {
  ElementForm form;
  for (const int64_t extent : extents) {
    if (extent == 1) continue;
    form.vars.push_back(make_var(fmt::format("i{}", form.vars.size()), kInt32));
    form.extents.push_back(extent);
  }
  return form;
}

std::vector<Expr> element_indices(const Region& region, const ElementForm& form) {
  std::vector<Expr> result;
  size_t next = 0;
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    const Expr& start = region.start[axis];
    if (region.extent[axis] == 1) {
      result.push_back(start);
      continue;
    }
    const Expr offset = cast(var_ref(form.vars[next++], start->span), start->type, start->span);
    result.push_back(constant_int(start) == 0 ? offset : binary(BinaryOp::add, start, offset, start->span));
  }
  return result;
}

std::optional<ElementForm> of_copy(const Copy& n, Span span) {
  if (n.source.buffer == n.destination.buffer) return std::nullopt;
  ElementForm form = over_box(n.destination.extent);
  const Expr value = load(n.source.buffer, element_indices(n.source, form), n.source.span);
  const Buffer& to = n.destination.buffer;
  form.body = {make_stmt(Store{to, element_indices(n.destination, form), cast(value, to->type, span)}, span)};
  return form;
}

std::optional<ElementForm> of_fill(const Fill& n, Span span) {
  if (has_load(n.value)) return std::nullopt;
  ElementForm form = over_box(n.destination.extent);
  form.body = {make_stmt(Store{n.destination.buffer, element_indices(n.destination, form), n.value}, span)};
  return form;
}

}  // namespace

std::optional<ElementForm> box_form(const Stmt& stmt) {
  if (const auto* n = std::get_if<Copy>(&stmt->node)) return of_copy(*n, stmt->span);
  if (const auto* n = std::get_if<Fill>(&stmt->node)) return of_fill(*n, stmt->span);
  return std::nullopt;
}

std::optional<ElementForm> element_form(const Stmt& stmt) {
  if (const auto* copy = std::get_if<Copy>(&stmt->node); copy && copy->peer) return std::nullopt;
  const auto* loop = std::get_if<For>(&stmt->node);
  std::optional<ElementForm> form = loop ? of_loop(*loop) : box_form(stmt);
  return form && !form->vars.empty() ? form : std::nullopt;
}

ElementForm over_variables(const ElementForm& form, const std::vector<Var>& vars) {
  const auto renamed = [&](const Var& v) -> Expr {
    const auto found = std::find(form.vars.begin(), form.vars.end(), v);
    return found == form.vars.end() ? nullptr : var_ref(vars[size_t(found - form.vars.begin())]);
  };
  ElementForm result{vars, form.extents, {}, form.is_loop};
  for (const Stmt& s : form.body) result.body.push_back(substitute(s, renamed));
  return result;
}

std::vector<ElementAccess> accesses(const std::vector<Stmt>& body) {
  std::vector<ElementAccess> result;
  for (const Stmt& s : body) {
    walk(
        s,
        [&](const Stmt& part) {
          if (const auto* n = std::get_if<Store>(&part->node)) result.push_back({n->buffer, n->indices, true});
        },
        [&](const Expr& part) {
          if (const auto* n = std::get_if<Load>(&part->node)) result.push_back({n->buffer, n->indices, false});
        });
  }
  return result;
}

bool separates_elements(const std::vector<Expr>& indices, const ElementForm& form) {
  const auto is_own_index = [&](const Expr& index, size_t var) {
    const auto sum = affine(index);
    if (!sum) return false;
    const int64_t coefficient = sum->coefficient(form.vars[var]);
    // Small enough not to come back to the same place by wrapping.
    if (coefficient != 1 && coefficient != -1) return false;
    return std::none_of(form.vars.begin(), form.vars.end(),
                        [&](const Var& v) { return v != form.vars[var] && sum->coefficient(v) != 0; });
  };
  for (size_t var = 0; var < form.vars.size(); ++var) {
    const bool found =
        std::any_of(indices.begin(), indices.end(), [&](const Expr& index) { return is_own_index(index, var); });
    if (!found) return false;
  }
  return std::none_of(indices.begin(), indices.end(), has_load);
}

}  // namespace tilepilot::passes
