#include "compiler/targets/gpu/facts/element_copies.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/dead_lets.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

bool is_zero(const Expr& value) {
  const auto* number = ir::as<ir::FloatImm>(value);
  if (const auto* cast = ir::as<ir::Cast>(value)) return is_zero(cast->value);
  return number ? number->value == 0 && !std::signbit(number->value) : ir::constant_int(value) == 0;
}

const ir::Load* as_load(const Expr& value) {
  const auto* cast = ir::as<ir::Cast>(value);
  return ir::as<ir::Load>(cast ? cast->value : value);
}

// Replaces names of integer lets in indices, wherever these stand, in conditions, and in what decides between an
// element and zero.
class InIndices : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  // `effects`: of the loop, which must not write what a let's value is read from.
  InIndices(const c::IntegerFacts& facts, const ir::Effects& effects) : values_(facts), effects_(effects) {}

  bool found_values() const { return !values_.empty(); }

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    if (const auto* load = ir::as<ir::Load>(inner)) return ir::load(load->buffer, named(load->indices), expr->span);
    const auto* choice = ir::as<ir::Select>(inner);
    if (choice == nullptr) return inner;
    return ir::select(values_.named(choice->condition), choice->then, choice->otherwise, expr->span);
  }
  Stmt rewrite(const Stmt& stmt) override {
    if (ir::as<ir::Block>(stmt)) return ir::make_stmt(ir::Block{rewrite_all(ir::statements(stmt))}, stmt->span);
    const Stmt inner = rewrite_children(stmt);
    if (const auto* let = ir::as<ir::Let>(inner)) add(*let);
    if (const auto* choice = ir::as<ir::If>(inner))
      return ir::make_stmt(ir::If{values_.named(choice->condition), choice->then, choice->otherwise}, stmt->span);
    const auto* store = ir::as<ir::Store>(inner);
    return store ? ir::make_stmt(ir::Store{store->buffer, named(store->indices), store->value}, stmt->span) : inner;
  }
  std::vector<Stmt> rewrite_all(const std::vector<Stmt>& body) {
    std::vector<Stmt> all;
    for (const Stmt& stmt : body) all.push_back(rewrite(stmt));
    return without_dead_lets(all);
  }

 private:
  LetValues values_;
  const ir::Effects& effects_;

  void add(const ir::Let& let) {
    if (!let.var->type.is_int() && let.var->type != ir::kBool) return;
    bool lasts = true;
    ir::each_effect(let.value, [&](const ir::Buffer& buffer, bool) {
      lasts = lasts && !effects_.writes.contains(ir::memory_of(buffer));
    });
    if (lasts) values_.add(let);
  }

  std::vector<Expr> named(const std::vector<Expr>& indices) const {
    std::vector<Expr> all;
    for (const Expr& index : indices) all.push_back(values_.named(index));
    return all;
  }
};

// Rewrites loops whose iterations are done side by side.
class SideBySide : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  using Change = std::function<Stmt(const Stmt&, const ir::For&)>;
  explicit SideBySide(Change change) : change_(std::move(change)) {}
  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    const bool is_one = loop && (loop->kind == ir::LoopKind::parallel || loop->kind == ir::LoopKind::vectorized);
    return is_one ? change_(stmt, *loop) : rewrite_children(stmt);
  }

 private:
  const Change change_;
};

Stmt values_in_indices(const c::IntegerFacts& facts, const Stmt& stmt, const ir::For& loop);

// The same for the loops in an iteration.
class InInnerLoops : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit InInnerLoops(const c::IntegerFacts& facts) : facts_(facts) {}
  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    return loop ? values_in_indices(facts_, stmt, *loop) : rewrite_children(stmt);
  }

 private:
  const c::IntegerFacts& facts_;
};

// Statements of blocks among blocks: one is left of a condition that always holds.
std::vector<Stmt> all_statements(const Stmt& stmt) {
  std::vector<Stmt> all;
  for (const Stmt& part : ir::statements(stmt)) {
    const std::vector<Stmt> inner = ir::as<ir::Block>(part) ? all_statements(part) : std::vector<Stmt>{part};
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

Stmt values_in_indices(const c::IntegerFacts& facts, const Stmt& stmt, const ir::For& loop) {
  const ir::Effects effects = ir::memory_effects_of(loop.body);
  InIndices values(facts, effects);
  std::vector<Stmt> body;
  const std::vector<Stmt> before = ir::statements(loop.body);
  bool changed = std::any_of(before.begin(), before.end(), [](const Stmt& part) { return ir::as<ir::Block>(part); });
  for (const Stmt& given : all_statements(loop.body)) {
    body.push_back(InInnerLoops(facts).rewrite(given));
    changed |= body.back() != given;
  }
  body = values.rewrite_all(body);
  if (!values.found_values() && !changed) return stmt;
  ir::For result = loop;
  result.body = ir::make_stmt(ir::Block{std::move(body)}, loop.body->span);
  return ir::make_stmt(std::move(result), stmt->span);
}

// The index with 0 in the place of `var`, if it is a sum of that and of what does not name it; else null.
Expr start_along(const Expr& index, const ir::Var& var) {
  if (const auto* ref = ir::as<ir::VarRef>(index)) return ref->var == var ? ir::int_imm(0, index->type) : nullptr;
  const auto* sum = ir::as<ir::Binary>(index);
  if (sum == nullptr || (sum->op != BinaryOp::add && sum->op != BinaryOp::sub)) return nullptr;
  const bool left = ir::mentions(sum->left, var), right = ir::mentions(sum->right, var);
  if (left == right || (right && sum->op == BinaryOp::sub)) return nullptr;
  const Expr inner = start_along(left ? sum->left : sum->right, var);
  if (!inner) return nullptr;
  const Expr& other = left ? sum->right : sum->left;
  if (sum->op == BinaryOp::add && ir::constant_int(inner) == 0) return other;
  return ir::binary(sum->op, left ? inner : sum->left, left ? sum->right : inner, index->span);
}

// One side of a copy: the box that the loop's variables run through, in their order, and which of them along which
// axis.
struct Side {
  ir::Region box;
  std::vector<size_t> order;
};
std::optional<Side> side_of(const ir::Buffer& buffer, const std::vector<Expr>& indices, const ir::For& loop,
                            Span span) {
  Side side{{buffer, {}, {}, span}, {}};
  for (const Expr& given : indices) {
    Expr index = given;
    int64_t extent = 1;
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      if (!ir::mentions(index, loop.vars[k])) continue;
      index = extent == 1 ? start_along(index, loop.vars[k]) : nullptr;
      if (!index) return std::nullopt;
      extent = *ir::constant_int(loop.extents[k]);
      side.order.push_back(k);
    }
    side.box.start.push_back(std::move(index));
    side.box.extent.push_back(extent);
  }
  return side;
}

// Tiles have no elements outside.
bool is_inside(const ir::Region& box) {
  for (size_t axis = 0; axis < box.extent.size(); ++axis) {
    const auto start = ir::constant_int(box.start[axis]), length = ir::constant_int(box.buffer->shape[axis]);
    if (!start || !length || *start < 0 || *start + box.extent[axis] > *length) return false;
  }
  return true;
}

// Whether the condition says no more than that the indices are within the tensor, past which a copy reads zero.
bool is_bounds_check(const Expr& condition, const ir::Buffer& tensor, const std::vector<Expr>& indices) {
  const auto* node = ir::as<ir::Binary>(condition);
  if (node == nullptr) return false;
  if (node->op == BinaryOp::logical_and)
    return is_bounds_check(node->left, tensor, indices) && is_bounds_check(node->right, tensor, indices);
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    if (!ir::structurally_equal(node->left, indices[axis])) continue;
    if (node->op == BinaryOp::lt && ir::structurally_equal(node->right, tensor->shape[axis])) return true;
    if (node->op == BinaryOp::ge && ir::constant_int(node->right) == 0) return true;
  }
  return false;
}

// What stays of the loop's variables: those of one value are 0.
ir::For without_single(const ir::For& loop) {
  ir::For result = loop;
  result.vars.clear();
  result.extents.clear();
  for (size_t k = 0; k < loop.vars.size(); ++k) {
    if (ir::constant_int(loop.extents[k]) == 1) {
      result.body = ir::substitute(
          result.body, [&](const ir::Var& var) { return var == loop.vars[k] ? ir::int_imm(0, var->type) : nullptr; });
      continue;
    }
    result.vars.push_back(loop.vars[k]);
    result.extents.push_back(loop.extents[k]);
  }
  return result;
}

// Without a condition that says no more than that what is stored, perhaps with names for parts of it, is within its
// tensor, past which nothing is stored.
ir::For without_guard(const ir::For& loop) {
  const std::vector<Stmt> body = ir::statements(loop.body);
  const auto* guard = body.size() == 1 ? ir::as<ir::If>(body[0]) : nullptr;
  const std::vector<Stmt> guarded = guard && !guard->otherwise ? ir::statements(guard->then) : std::vector<Stmt>{};
  const auto* store = guarded.empty() ? nullptr : ir::as<ir::Store>(guarded.back());
  const bool only_names =
      store && std::all_of(guarded.begin(), guarded.end() - 1, [](const Stmt& stmt) { return ir::as<ir::Let>(stmt); });
  ir::For result = loop;
  if (only_names && store->buffer->scope == Scope::global &&
      is_bounds_check(guard->condition, store->buffer, store->indices))
    result.body = guard->then;
  return result;
}

bool has_constant_extents(const ir::For& loop) {
  return std::all_of(loop.extents.begin(), loop.extents.end(),
                     [](const Expr& extent) { return ir::constant_int(extent).value_or(0) >= 1; });
}

Stmt as_box_copy(const Stmt& stmt, const ir::For& given) {
  if (given.kind != ir::LoopKind::parallel || !has_constant_extents(given)) return stmt;
  const ir::For loop = without_single(without_guard(given));
  const auto copy = element_copy(loop);
  if (!copy || loop.vars.empty()) return stmt;
  const Scope from = copy->source->scope, to = copy->destination->scope;
  const bool loads = from == Scope::global && to == Scope::shared;
  const bool stores = to == Scope::global && (from == Scope::fragment || from == Scope::shared);
  if (!loads && !stores) return stmt;
  if (copy->source->type.is_nibble() || copy->destination->type.is_nibble()) return stmt;
  if (copy->condition && !(loads && is_bounds_check(copy->condition, copy->source, copy->from))) return stmt;
  const auto source = side_of(copy->source, copy->from, loop, stmt->span);
  const auto destination = side_of(copy->destination, copy->to, loop, stmt->span);
  if (!source || !destination || source->order.size() != loop.vars.size()) return stmt;
  if (source->order != destination->order || !is_inside(loads ? destination->box : source->box)) return stmt;
  return ir::make_stmt(ir::Copy{source->box, destination->box, {}}, stmt->span);
}

// Loops that store to a tensor what they compute of a GEMM's sums, cut in two: they compute into a fragment, which is
// copied. Sums lie where tensor cores leave them, two neighbours in a thread, and copies know ways from there.
class SumsCopied : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit SumsCopied(ir::Kernel& kernel) : kernel_(kernel) {
    ir::walk(
        kernel.body,
        [&](const Stmt& stmt) {
          if (const auto* gemm = ir::as<ir::Gemm>(stmt)) sums_.insert(gemm->c.buffer.get());
        },
        [](const Expr&) {});
  }

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return rewrite_children(stmt);
    return has_constant_extents(*loop) ? cut(stmt, *loop) : stmt;
  }

 private:
  ir::Kernel& kernel_;
  ir::BufferSet sums_;

  Stmt cut(const Stmt& stmt, const ir::For& given) {
    const ir::For loop = without_guard(given);
    std::vector<Stmt> body = ir::statements(loop.body);
    const auto* store = body.empty() ? nullptr : ir::as<ir::Store>(body.back());
    if (store == nullptr || store->buffer->scope != Scope::global || store->buffer->type.is_nibble()) return stmt;
    for (size_t k = 0; k + 1 < body.size(); ++k)
      if (!ir::as<ir::Let>(body[k])) return stmt;
    if (loop.vars.size() < 2 || ir::as<ir::Load>(store->value) || !computes_of_sums(loop)) return stmt;
    const auto box = side_of(store->buffer, store->indices, loop, stmt->span);
    if (!box || box->order.size() != loop.vars.size() || !std::is_sorted(box->order.begin(), box->order.end()))
      return stmt;
    ir::BufferData data{
        store->buffer->name + "_held", store->buffer->type, Scope::fragment, loop.extents, {}, stmt->span};
    const ir::Buffer held = std::make_shared<ir::BufferData>(std::move(data));
    kernel_.allocations.push_back(held);
    std::vector<Expr> at;
    for (const ir::Var& var : loop.vars) at.push_back(ir::var_ref(var));
    body.back() = ir::make_stmt(ir::Store{held, at, store->value}, body.back()->span);
    ir::For computes = loop;
    computes.body = ir::make_stmt(ir::Block{std::move(body)}, loop.body->span);
    return block({ir::make_stmt(std::move(computes), stmt->span),
                  ir::make_stmt(ir::Copy{whole(held, stmt->span), box->box, {}}, stmt->span)},
                 stmt->span);
  }

  bool computes_of_sums(const ir::For& loop) const {
    bool found = false;
    ir::each_effect(loop.body, [&](const ir::Buffer& buffer, bool writes) {
      found = found || (!writes && sums_.contains(buffer.get()));
    });
    return found;
  }
};

ir::Kernel changed(const ir::Kernel& kernel, SideBySide::Change change) {
  ir::Kernel result = kernel;
  result.body = SideBySide(std::move(change)).rewrite(kernel.body);
  return result;
}

}  // namespace

std::optional<ElementCopy> element_copy(const ir::For& loop) {
  const std::vector<Stmt> body = ir::statements(loop.body);
  const auto* last = body.empty() ? nullptr : ir::as<ir::Store>(body.back());
  if (last == nullptr) return std::nullopt;
  std::unordered_map<const ir::VarData*, Expr> values;
  const auto named = [&](const Expr& expr) {
    return ir::substitute(expr, [&](const ir::Var& var) {
      const auto found = values.find(var.get());
      return found == values.end() ? nullptr : found->second;
    });
  };
  for (size_t k = 0; k + 1 < body.size(); ++k) {
    const auto* let = ir::as<ir::Let>(body[k]);
    if (let == nullptr || !is_no_arithmetic(let->value)) return std::nullopt;
    values.emplace(let->var.get(), named(let->value));
  }
  const Expr value = named(last->value);
  const auto* choice = ir::as<ir::Select>(value);
  if (choice && !is_zero(choice->otherwise)) return std::nullopt;
  const auto* load = as_load(choice ? choice->then : value);
  if (load == nullptr) return std::nullopt;
  ElementCopy copy{load->buffer, load->indices, last->buffer, {}, choice ? choice->condition : nullptr};
  for (const Expr& index : last->indices) copy.to.push_back(named(index));
  bool reads_own = false;
  ir::each_effect(value, [&](const ir::Buffer& buffer, bool) {
    reads_own = reads_own || ir::memory_of(buffer) == ir::memory_of(last->buffer);
  });
  return reads_own ? std::nullopt : std::optional(std::move(copy));
}

Stmt as_async(const Stmt& gather) {
  ir::For loop = *ir::as<ir::For>(gather);
  ElementCopy copy = *element_copy(loop);
  if (copy.condition && !is_bounds_check(copy.condition, copy.source, copy.from))
    copy.from[0] = ir::select(copy.condition, copy.from[0], ir::int_imm(-1, copy.from[0]->type), gather->span);
  ir::Copy one{element(copy.source, copy.from, gather->span), element(copy.destination, copy.to, gather->span), {}};
  one.mode = ir::CopyMode::group;
  loop.body = ir::make_stmt(ir::Block{{ir::make_stmt(std::move(one), gather->span)}}, gather->span);
  return ir::make_stmt(std::move(loop), gather->span);
}

bool is_async_gather(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  return loop && loop->kind == ir::LoopKind::parallel && ir::contains(loop->body, [](const Stmt& part) {
           const auto* copy = ir::as<ir::Copy>(part);
           return copy && copy->mode == ir::CopyMode::group;
         });
}

ir::Kernel with_values_in_indices(const ir::Kernel& kernel) {
  const c::IntegerFacts facts = facts_of(kernel);
  return changed(kernel, [&](const Stmt& stmt, const ir::For& loop) { return values_in_indices(facts, stmt, loop); });
}

ir::Kernel with_box_copies(const ir::Kernel& kernel) {
  ir::Kernel result = changed(kernel, as_box_copy);
  // Where threads synchronise as the program says, there are no more barriers than it says.
  if (!kernel.thread_vars.empty() || ir::contains<ir::Barrier, ir::Roles>(kernel.body)) return result;
  result.body = SumsCopied(result).rewrite(result.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
