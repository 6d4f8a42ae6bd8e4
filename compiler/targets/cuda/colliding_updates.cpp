#include "compiler/targets/cuda/colliding_updates.h"

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/ir/search.h"
#include "compiler/ir/text.h"
#include "compiler/ir/touches.h"
#include "compiler/passes/element_form.h"
#include "compiler/targets/cuda/static_index.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kMostIterations = int64_t{1} << 16;  // that are told apart one by one
constexpr int64_t kSomeIterations = 64;                // of an axis of which only the kernel knows how many it has

// What does not change within the loop has this value.
class WithOuterValue : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  WithOuterValue(const std::vector<ir::Var>& vars, int64_t value) : value_(value) {
    for (const ir::Var& var : vars) vars_.insert(var.get());
  }
  Expr rewrite(const Expr& expr) override {
    const bool varies = ir::mentions(expr, vars_);
    if (!varies && (ir::as<ir::VarRef>(expr) || ir::as<ir::Load>(expr))) return ir::int_imm(value_, expr->type);
    return rewrite_children(expr);
  }

 private:
  ir::Variables vars_;
  int64_t value_;
};

// The next iteration; false after the last.
bool advance(std::vector<int64_t>& at, const std::vector<int64_t>& extents) {
  for (size_t axis = at.size(); axis-- > 0;) {
    if (++at[axis] < extents[axis]) return true;
    at[axis] = 0;
  }
  return false;
}

bool collide(const ir::For& loop, const std::vector<Expr>& indices) {
  passes::ElementForm form;
  std::vector<int64_t> extents;
  int64_t iterations = 1;
  for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
    extents.push_back(ir::constant_int(loop.extents[axis]).value_or(kSomeIterations));
    if (extents.back() <= 0) return false;
    iterations = std::min(iterations * extents.back(), kMostIterations + 1);
    if (extents.back() == 1) continue;
    form.vars.push_back(loop.vars[axis]);
    form.extents.push_back(extents.back());
  }
  if (passes::separates_elements(indices, form)) return false;
  if (iterations > kMostIterations) return true;
  for (const int64_t outer : {0, 1}) {
    std::vector<StaticIndex> evaluators;
    for (const Expr& index : indices) {
      auto evaluator = StaticIndex::of(WithOuterValue(loop.vars, outer).rewrite(index), loop.vars);
      if (!evaluator) return true;
      evaluators.push_back(std::move(*evaluator));
    }
    std::set<std::vector<int64_t>> seen;
    std::vector<int64_t> at(extents.size(), 0);
    do {
      std::vector<int64_t> place;
      for (const StaticIndex& evaluator : evaluators) place.push_back(evaluator(at));
      if (!seen.insert(std::move(place)).second) return true;
    } while (advance(at, extents));
  }
  return false;
}

struct Update {
  ir::AtomicOp op;
  Expr value;
};

// `element = element op value`, whichever operand comes first.
std::optional<Update> update_of(const ir::Store& store) {
  const auto* value = ir::as<ir::Binary>(store.value);
  if (value == nullptr) return std::nullopt;
  const auto is_element = [&](const Expr& expr) {
    const auto* load = ir::as<ir::Load>(expr);
    return load != nullptr && load->buffer == store.buffer &&
           std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(), store.indices.end(),
                      [](const Expr& a, const Expr& b) { return ir::structurally_equal(a, b); });
  };
  const bool first = is_element(value->left), second = is_element(value->right);
  if (first == second || (second && value->op == BinaryOp::sub)) return std::nullopt;
  const Expr& other = first ? value->right : value->left;
  bool reads = false;
  ir::walk(other, [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    reads |= load != nullptr && ir::memory_of(load->buffer) == ir::memory_of(store.buffer);
  });
  if (reads) return std::nullopt;
  switch (value->op) {
    case BinaryOp::add:
      return Update{ir::AtomicOp::add, other};
    case BinaryOp::sub: {
      const Expr zero = other->type.is_float() ? ir::float_imm(0, other->type) : ir::int_imm(0, other->type);
      return Update{ir::AtomicOp::add, ir::binary(BinaryOp::sub, zero, other, other->span)};
    }
    case BinaryOp::min:
      return Update{ir::AtomicOp::min, other};
    case BinaryOp::max:
      return Update{ir::AtomicOp::max, other};
    default:
      return std::nullopt;
  }
}

class AtomicUpdates : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit AtomicUpdates(const ir::For& loop) : loop_(loop) {}

  Stmt rewrite(const Stmt& stmt) override {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr) return rewrite_children(stmt);
    if (store->buffer->scope == ir::Scope::local || store->buffer->type.is_nibble()) return stmt;
    const auto update = update_of(*store);
    if (!update || !collide(loop_, store->indices)) return stmt;
    ir::Region element{store->buffer, store->indices, std::vector<int64_t>(store->indices.size(), 1), stmt->span};
    return ir::make_stmt(ir::Atomic{update->op, std::move(element), update->value}, stmt->span);
  }

 private:
  const ir::For& loop_;
};

}  // namespace

Stmt with_atomic_updates(const Stmt& stmt) { return AtomicUpdates(*ir::as<ir::For>(stmt)).rewrite(stmt); }

std::vector<ir::Buffer> jointly_updated_fragments(const ir::For& loop) {
  std::vector<ir::Buffer> fragments;
  ir::walk(
      loop.body,
      [&](const Stmt& part) {
        const auto* atomic = ir::as<ir::Atomic>(part);
        if (atomic == nullptr || atomic->element.buffer->scope != ir::Scope::fragment) return;
        const ir::Buffer& buffer = atomic->element.buffer;
        if (std::find(fragments.begin(), fragments.end(), buffer) == fragments.end() &&
            collide(loop, atomic->element.start))
          fragments.push_back(buffer);
      },
      [](const Expr&) {});
  return fragments;
}

}  // namespace tilepilot::targets::cuda
