#include "compiler/targets/cpu/loops/hoist.h"

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::cpu {
namespace {

class Hoister {
 public:
  explicit Hoister(c::Context& context) : context_(context) {}

  HoistedChecks run(const ir::For& loop) {
    bound_inside_ = ir::bound_in(loop.body);
    for (const ir::Var& var : loop.vars) bound_inside_.insert(var.get());
    add_box(loop);
    ir::walk(
        loop.body,
        [&](const ir::Stmt& stmt) {
          if (const auto* inner = std::get_if<ir::For>(&stmt->node)) add_box(*inner);
        },
        [](const ir::Expr&) {});
    ir::walk(
        loop.body, [&](const ir::Stmt& stmt) { on_stmt(stmt); }, [&](const ir::Expr& expr) { on_expr(expr); });
    return std::move(checks_);
  }

 private:
  c::Context& context_;
  HoistedChecks checks_;
  std::unordered_map<const ir::VarData*, int64_t> box_;  // largest value of the loops' variables
  ir::Variables bound_inside_;                           // no name outside the loop

  void add_box(const ir::For& loop) {
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      const auto extent = ir::constant_int(loop.extents[k]);
      if (!extent || *extent < 1) continue;
      box_[loop.vars[k].get()] = *extent - 1;
      context_.facts.set_range(loop.vars[k], {0, *extent - 1});
    }
  }

  void on_stmt(const ir::Stmt& stmt) {
    if (const auto* store = std::get_if<ir::Store>(&stmt->node)) on_access(stmt.get(), store->buffer, store->indices);
    if (const auto* atomic = std::get_if<ir::Atomic>(&stmt->node))
      on_access(stmt.get(), atomic->element.buffer, atomic->element.start);
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) on_condition(branch, branch->condition);
  }

  void on_expr(const ir::Expr& expr) {
    if (const auto* load = std::get_if<ir::Load>(&expr->node)) on_access(expr.get(), load->buffer, load->indices);
    if (const auto* choice = std::get_if<ir::Select>(&expr->node)) on_condition(choice, choice->condition);
  }

  void on_access(const void* node, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
    if (buffer->scope != ir::Scope::global && !context_.checks_tiles) return;
    std::vector<ir::Affine> needed;  // each must be >= 0
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      if (context_.facts.in_bounds(indices[axis], buffer->shape[axis])) continue;
      const auto position = context_.facts.affine(indices[axis]);
      const auto extent = context_.facts.affine(buffer->shape[axis]);
      if (!position || !extent || !context_.facts.is_exact(indices[axis])) return;
      if (context_.facts.index_range(indices[axis]).lo < 0) needed.push_back(*position);
      auto room = ir::difference(*extent, *position);
      if (!room) return;
      room->constant -= 1;
      needed.push_back(*room);
    }
    accept(node, needed);
  }

  // The branch stands for its condition: the condition's own node may be an access, which is proven for being in
  // bounds.
  void on_condition(const void* branch, const ir::Expr& condition) {
    std::vector<ir::Affine> needed;
    if (c::collect_comparisons(context_.facts, condition, needed)) accept(branch, needed);
  }

  void accept(const void* node, const std::vector<ir::Affine>& needed) {
    std::vector<std::string> conditions;
    for (const ir::Affine& form : needed) {
      if (context_.facts.range(form).lo >= 0) continue;
      const ir::Affine least = minimum(form);
      if (least.is_constant() && least.constant < 0) return;  // never holds for the whole loop
      for (const auto& term : least.terms)
        if (bound_inside_.contains(term.var.get())) return;
      conditions.push_back(condition(least));
    }
    (conditions.empty() ? checks_.always_proven : checks_.proven).push_back(node);
    for (std::string& condition : conditions)
      if (std::find(checks_.conditions.begin(), checks_.conditions.end(), condition) == checks_.conditions.end())
        checks_.conditions.push_back(std::move(condition));
  }

  // The least value over the loops' variables, in terms of the others.
  ir::Affine minimum(const ir::Affine& form) const {
    ir::Affine least{{}, form.constant};
    for (const auto& [var, coefficient] : form.terms) {
      const auto found = box_.find(var.get());
      if (found == box_.end()) {
        least.terms.push_back({var, coefficient});
      } else if (coefficient < 0) {
        least.constant += coefficient * found->second;
      }
    }
    return least;
  }

  // `form >= 0`, with the subtracted terms on the other side.
  std::string condition(const ir::Affine& form) {
    ir::Affine positive, negative;
    for (const auto& term : form.terms)
      (term.coefficient > 0 ? positive : negative).terms.push_back({term.var, std::abs(term.coefficient)});
    (form.constant > 0 ? positive : negative).constant = std::abs(form.constant);
    return index(context_, negative) + " <= " + index(context_, positive);
  }
};

}  // namespace

HoistedChecks hoist_checks(c::Context& context, const ir::For& loop) { return Hoister(context).run(loop); }

}  // namespace tilepilot::targets::cpu
