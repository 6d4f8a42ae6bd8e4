#include "compiler/passes/iteration_races.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/bounds.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/iteration_conflicts.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

// What every iteration does: neither branches nor loops are gone into, nor what a condition decides about.
class Unconditional {
 public:
  explicit Unconditional(const Stmt& body) { statement(body); }

  std::vector<Stmt> stores;
  std::vector<Expr> loads;

 private:
  void statement(const Stmt& stmt) {
    if (const auto* block = as<Block>(stmt))
      for (const Stmt& part : block->body) statement(part);
    if (const auto* let = as<Let>(stmt)) expression(let->value);
    const auto* store = as<Store>(stmt);
    if (store == nullptr) return;
    stores.push_back(stmt);
    expression(store->value);
    for (const Expr& index : store->indices) expression(index);
  }
  void expression(const Expr& expr) {
    if (const auto* choice = as<Select>(expr)) return expression(choice->condition);
    const auto* both = as<Binary>(expr);
    if (both && (both->op == BinaryOp::logical_and || both->op == BinaryOp::logical_or)) return expression(both->left);
    if (as<Load>(expr)) loads.push_back(expr);
    each_operand(expr, [&](const Expr& operand) { expression(operand); });
  }

  template <class Each>
  static void each_operand(const Expr& expr, const Each& each) {
    if (const auto* n = as<Load>(expr))
      for (const Expr& index : n->indices) each(index);
    if (const auto* n = as<Unary>(expr)) each(n->operand);
    if (const auto* n = as<Binary>(expr)) each(n->left), each(n->right);
    if (const auto* n = as<Math>(expr)) each(n->argument);
    if (const auto* n = as<Cast>(expr)) each(n->value);
    if (const auto* n = as<Reinterpret>(expr)) each(n->value);
  }
};

class Meeting {
 public:
  Meeting(const For& loop, const IterationSpace& space) : loop_(loop), space_(space) {}

  // Whether some iteration writes by `written` what another one reads by `read`.
  bool is_certain(const Buffer& buffer, const std::vector<Expr>& written, const std::vector<Expr>& read) const {
    std::vector<int64_t> apart(loop_.vars.size(), 0);  // the writing iteration less the reading one
    for (size_t axis = 0; axis < written.size(); ++axis) {
      const auto at = affine(space_.expanded(written[axis])), from = affine(space_.expanded(read[axis]));
      const auto distance = at && from ? difference(*from, *at) : std::nullopt;
      if (!distance || !distance->is_constant()) return false;
      if (distance->constant != 0 && !reach(*at, distance->constant, apart)) return false;
    }
    return still_meet(written, read, apart) && is_inside(buffer, written, apart);
  }

 private:
  const For& loop_;
  const IterationSpace& space_;

  // One variable goes as far, if none has before.
  bool reach(const Affine& at, int64_t distance, std::vector<int64_t>& apart) const {
    for (size_t k = 0; k < loop_.vars.size(); ++k) {
      const int64_t step = at.coefficient(loop_.vars[k]);
      if (step == 0 || distance % step != 0 || apart[k] != 0) continue;
      if (std::abs(distance / step) >= constant_int(loop_.extents[k]).value_or(0)) continue;
      apart[k] = distance / step;
      return true;
    }
    return false;
  }

  // Outside of the buffer nothing is written. Where an index has other terms, it is taken to lie inside.
  bool is_inside(const Buffer& buffer, const std::vector<Expr>& written, const std::vector<int64_t>& apart) const {
    VarRanges writing;
    for (size_t k = 0; k < apart.size(); ++k) {
      const int64_t last = constant_int(loop_.extents[k]).value_or(1) - 1;
      writing.emplace(loop_.vars[k].get(),
                      Bounds{std::max<int64_t>(0, apart[k]), last + std::min<int64_t>(0, apart[k])});
    }
    for (size_t axis = 0; axis < written.size(); ++axis) {
      const auto at = affine(space_.expanded(written[axis]));
      const auto extent = constant_int(buffer->shape[axis]);
      if (!extent || std::any_of(at->terms.begin(), at->terms.end(),
                                 [&](const Affine::Term& term) { return !writing.contains(term.var.get()); }))
        continue;
      const auto range = bounds(*at, writing);
      if (!range || range->hi < 0 || range->lo >= *extent) return false;
    }
    return true;
  }

  // A variable that went for one index moves others, too.
  bool still_meet(const std::vector<Expr>& written, const std::vector<Expr>& read,
                  const std::vector<int64_t>& apart) const {
    for (size_t axis = 0; axis < written.size(); ++axis) {
      const Affine at = *affine(space_.expanded(written[axis]));
      int64_t moved = 0;
      for (size_t k = 0; k < apart.size(); ++k) moved += at.coefficient(loop_.vars[k]) * apart[k];
      if (moved != difference(*affine(space_.expanded(read[axis])), at)->constant) return false;
    }
    return std::any_of(apart.begin(), apart.end(), [](int64_t distance) { return distance != 0; });
  }
};

}  // namespace

std::vector<IterationRace> iteration_races(const Stmt& stmt) {
  const For& loop = *as<For>(stmt);
  const IterationSpace space(loop);
  const Meeting meeting(loop, space);
  const Unconditional body(loop.body);
  std::vector<IterationRace> races;
  for (const Stmt& written : body.stores) {
    const auto& store = *as<Store>(written);
    if (store.buffer->scope == Scope::local) continue;
    for (const Expr& read : body.loads) {
      const auto& load = *as<Load>(read);
      if (load.buffer == store.buffer && meeting.is_certain(store.buffer, store.indices, load.indices))
        races.push_back({stmt, read});
    }
  }
  return races;
}

std::vector<Diagnostic> race_warnings(const Program& program) {
  std::vector<Diagnostic> warnings;
  const auto warn = [&](const Stmt& stmt) {
    const auto* loop = as<For>(stmt);
    if (loop == nullptr || loop->kind != LoopKind::parallel) return;
    std::vector<const BufferData*> told;
    for (const IterationRace& race : iteration_races(stmt)) {
      const BufferData* buffer = as<Load>(race.read)->buffer.get();
      if (std::find(told.begin(), told.end(), buffer) != told.end()) continue;
      told.push_back(buffer);
      warnings.push_back(
          {DiagnosticKind::iteration_race,
           race.read->span,
           fmt::format("iterations of this parallel loop read elements of `{}` that others write: which value "
                       "they find depends on who comes first",
                       buffer->name),
           {},
           "write into another buffer, or copy what is read before the loop"});
    }
  };
  for (const Kernel& kernel : program.kernels) walk(kernel.body, warn, [](const Expr&) {});
  return warnings;
}

}  // namespace tilepilot::passes
