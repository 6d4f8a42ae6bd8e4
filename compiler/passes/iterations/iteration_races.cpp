#include "compiler/passes/iterations/iteration_races.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/ir/bounds.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/iterations/block_races.h"
#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

// Changes nothing.
class CertainLoads : public Rewriter {
 public:
  std::vector<Expr> loads;

  using Rewriter::rewrite;
  Expr rewrite(const Expr& expr) override {
    const auto* choice = as<Select>(expr);
    const auto* both = as<Binary>(expr);
    const bool decides = both && (both->op == BinaryOp::logical_and || both->op == BinaryOp::logical_or);
    if (choice || decides) {
      rewrite(choice ? choice->condition : both->left);
      return expr;
    }
    if (as<Load>(expr)) loads.push_back(expr);
    return rewrite_children(expr);
  }
};

// What every iteration does: neither branches nor loops are gone into, nor what a condition decides about.
class Unconditional {
 public:
  explicit Unconditional(const Stmt& body) { visit(body); }

  std::vector<Stmt> stores;
  std::vector<Expr> loads;

 private:
  void visit(const Stmt& stmt) {
    if (const auto* block = as<Block>(stmt)) {
      for (const Stmt& part : block->body) visit(part);
    } else if (const auto* let = as<Let>(stmt)) {
      read(let->value);
    } else if (const auto* store = as<Store>(stmt)) {
      stores.push_back(stmt);
      for (const Expr& index : store->indices) read(index);
      read(store->value);
    }
  }
  void read(const Expr& expr) {
    for (Expr& load : certain_loads(expr)) loads.push_back(std::move(load));
  }
};

// An element that one iteration writes and another one reads.
class SharedElement {
 public:
  SharedElement(const For& loop, const IterationSpace& space) : loop_(loop), space_(space) {}

  // Whether there is one for sure.
  bool is_certain(const Buffer& buffer, const std::vector<Expr>& written, const std::vector<Expr>& read) const {
    std::vector<Axis> axes;
    for (size_t axis = 0; axis < written.size(); ++axis) {
      const auto at = affine(space_.expanded(written[axis])), from = affine(space_.expanded(read[axis]));
      const auto distance = at && from ? difference(*from, *at) : std::nullopt;
      if (!distance || !distance->is_constant()) return false;
      axes.push_back({*at, distance->constant, constant_int(buffer->shape[axis])});
    }
    std::vector<int64_t> apart(loop_.vars.size(), 0);  // the writing iteration less the reading one
    for (const Axis& axis : axes)
      if (axis.distance != 0 && !reach(axis, apart)) return false;
    const bool differ = std::any_of(apart.begin(), apart.end(), [](int64_t distance) { return distance != 0; });
    return differ && std::all_of(axes.begin(), axes.end(),
                                 [&](const Axis& axis) { return is_same(axis, apart) && is_inside(axis, apart); });
  }

 private:
  struct Axis {
    Affine written;
    int64_t distance = 0;           // of what is read from it
    std::optional<int64_t> extent;  // of the buffer
  };
  const For& loop_;
  const IterationSpace& space_;

  // One variable goes as far, if none has before.
  bool reach(const Axis& axis, std::vector<int64_t>& apart) const {
    for (size_t k = 0; k < loop_.vars.size(); ++k) {
      const int64_t step = axis.written.coefficient(loop_.vars[k]);
      if (step == 0 || axis.distance % step != 0 || apart[k] != 0) continue;
      if (std::abs(axis.distance / step) >= constant_int(loop_.extents[k]).value_or(0)) continue;
      apart[k] = axis.distance / step;
      return true;
    }
    return false;
  }

  // A variable that went for one index moves others, too.
  bool is_same(const Axis& axis, const std::vector<int64_t>& apart) const {
    int64_t moved = 0;
    for (size_t k = 0; k < apart.size(); ++k) moved += axis.written.coefficient(loop_.vars[k]) * apart[k];
    return moved == axis.distance;
  }

  // Outside of the buffer nothing is written. Where an index has other terms, it is taken to lie inside.
  bool is_inside(const Axis& axis, const std::vector<int64_t>& apart) const {
    VarRanges writing;
    for (size_t k = 0; k < apart.size(); ++k) {
      const int64_t last = constant_int(loop_.extents[k]).value_or(1) - 1;
      writing.emplace(loop_.vars[k].get(),
                      Bounds{std::max<int64_t>(0, apart[k]), last + std::min<int64_t>(0, apart[k])});
    }
    const auto is_known = [&](const Affine::Term& term) { return writing.contains(term.var.get()); };
    const auto& terms = axis.written.terms;
    if (!axis.extent || !std::all_of(terms.begin(), terms.end(), is_known)) return true;
    const auto range = bounds(axis.written, writing);
    return range && range->hi >= 0 && range->lo < *axis.extent;
  }
};

}  // namespace

std::vector<Expr> certain_loads(const Expr& expr) {
  CertainLoads found;
  found.rewrite(expr);
  return std::move(found.loads);
}

std::vector<IterationRace> iteration_races(const Stmt& stmt) {
  const For& loop = *as<For>(stmt);
  const IterationSpace space(loop);
  const SharedElement shared(loop, space);
  const Unconditional body(loop.body);
  std::vector<IterationRace> races;
  for (const Stmt& written : body.stores) {
    const auto& store = *as<Store>(written);
    if (store.buffer->scope == Scope::local) continue;
    for (const Expr& read : body.loads) {
      const auto& load = *as<Load>(read);
      if (load.buffer == store.buffer && shared.is_certain(store.buffer, store.indices, load.indices))
        races.push_back({stmt, read});
    }
  }
  return races;
}

std::vector<Diagnostic> race_warnings(const Program& program) {
  std::vector<Diagnostic> warnings;
  using Told = std::vector<const BufferData*>;
  const auto tell = [&](Told& told, const Buffer& buffer, Diagnostic warning) {
    if (std::find(told.begin(), told.end(), buffer.get()) != told.end()) return;
    told.push_back(buffer.get());
    warnings.push_back(std::move(warning));
  };
  const auto warn = [&](const Stmt& stmt) {
    const auto* loop = as<For>(stmt);
    if (loop == nullptr || loop->kind != LoopKind::parallel) return;
    Told told;
    for (const IterationRace& race : iteration_races(stmt)) {
      const Buffer& buffer = as<Load>(race.read)->buffer;
      tell(told, buffer,
           {DiagnosticKind::iteration_race,
            race.read->span,
            fmt::format("iterations of this parallel loop read elements of `{}` that others write: which value "
                        "they find depends on who comes first",
                        buffer->name),
            {},
            "write into another buffer, or copy what is read before the loop"});
    }
  };
  for (const Kernel& kernel : program.kernels) {
    walk(kernel.body, warn, [](const Expr&) {});
    Told told;
    for (const BlockRace& race : block_races(program, kernel)) {
      const Buffer& buffer = race.buffer;
      tell(told, buffer,
           {DiagnosticKind::block_race,
            race.store->span,
            fmt::format("blocks along `{}` change the same elements of `{}`, each from what it has read: what "
                        "others do in between is lost",
                        race.block->name, buffer->name),
            {},
            "use `T.atomic_add`, give each block elements of its own, or loop inside of one block"});
    }
  }
  return warnings;
}

}  // namespace tilepilot::passes
