#include "compiler/targets/gpu/facts/stored_values.h"

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Stmt;

namespace {

bool is_memory(const Buffer& buffer) {
  return buffer->scope == ir::Scope::shared || buffer->scope == ir::Scope::global;
}

bool is_same_element(const Buffer& a, const std::vector<Expr>& at, const Buffer& b, const std::vector<Expr>& other) {
  return a == b && std::equal(at.begin(), at.end(), other.begin(), other.end(),
                              [](const Expr& x, const Expr& y) { return ir::structurally_equal(x, y); });
}

// Loads of elements whose values have names.
class Named : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Expr rewrite(const Expr& expr) override {
    const auto* load = ir::as<ir::Load>(expr);
    for (const Value& value : load ? values_ : std::vector<Value>{})
      if (is_same_element(load->buffer, load->indices, value.buffer, value.indices))
        return value.inside ? ir::select(value.inside, ir::var_ref(value.name, expr->span),
                                         ir::cast(ir::int_imm(0), expr->type), expr->span)
                            : ir::var_ref(value.name, expr->span);
    return rewrite_children(expr);
  }

  // What is stored to the memory may be what another name stands for.
  // `inside`: that its place lies in the tensor, outside of which there are zeros; null if it does.
  void store(const ir::Store& store, const ir::Var& name, const Expr& inside) {
    std::erase_if(values_, [&](const Value& value) {
      bool changed = ir::memory_of(value.buffer) == ir::memory_of(store.buffer);
      for (const Expr& index : value.indices)
        ir::each_effect(index, [&](const Buffer& buffer, bool) {
          changed = changed || ir::memory_of(buffer) == ir::memory_of(store.buffer);
        });
      return changed;
    });
    if (name) values_.push_back({store.buffer, store.indices, name, inside});
  }

 private:
  struct Value {
    Buffer buffer;
    std::vector<Expr> indices;
    ir::Var name;
    Expr inside;
  };
  std::vector<Value> values_;
};

// Whether a statement after the store loads the same element, as far as only names and stores follow.
bool is_loaded_after(const std::vector<Stmt>& body, size_t place) {
  const auto& store = *ir::as<ir::Store>(body[place]);
  bool found = false;
  for (size_t k = place + 1; k < body.size() && !found; ++k)
    ir::walk(
        body[k], [](const Stmt&) {},
        [&](const Expr& part) {
          const auto* load = ir::as<ir::Load>(part);
          found = found || (load && is_same_element(load->buffer, load->indices, store.buffer, store.indices));
        });
  return found;
}

bool reads_memory(const std::vector<Expr>& indices, const Buffer& memory) {
  bool found = false;
  for (const Expr& index : indices)
    ir::each_effect(
        index, [&](const Buffer& buffer, bool) { found = found || ir::memory_of(buffer) == ir::memory_of(memory); });
  return found;
}

class Forwarding : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Forwarding(c::IntegerFacts facts) : facts_(std::move(facts)) {}

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr || (loop->kind != ir::LoopKind::parallel && loop->kind != ir::LoopKind::vectorized))
      return rewrite_children(stmt);
    const Stmt body = iteration(loop->body);
    if (!body) return stmt;
    ir::For result = *loop;
    result.body = body;
    return ir::make_stmt(std::move(result), stmt->span);
  }

 private:
  c::IntegerFacts facts_;

  static std::vector<Stmt> flat(const Stmt& stmt) {
    std::vector<Stmt> all;
    for (const Stmt& part : ir::statements(stmt)) {
      const std::vector<Stmt> inner = ir::as<ir::Block>(part) ? flat(part) : std::vector<Stmt>{part};
      all.insert(all.end(), inner.begin(), inner.end());
    }
    return all;
  }

  // What an iteration does, perhaps after names and under a condition; null if nothing changes.
  Stmt iteration(const Stmt& stmt) {
    std::vector<Stmt> body = flat(stmt);
    const auto* guard = body.empty() ? nullptr : ir::as<ir::If>(body.back());
    const auto is_name = [](const Stmt& part) { return ir::as<ir::Let>(part) != nullptr; };
    if (guard && !guard->otherwise && std::all_of(body.begin(), body.end() - 1, is_name)) {
      const size_t assumed = facts_.assume(guard->condition);
      const Stmt inner = iteration(guard->then);
      facts_.forget(assumed);
      if (!inner) return nullptr;
      body.back() = ir::make_stmt(ir::If{guard->condition, inner, nullptr}, body.back()->span);
      return block(std::move(body), stmt->span);
    }
    const bool is_straight = std::all_of(body.begin(), body.end(),
                                         [&](const Stmt& part) { return is_name(part) || ir::as<ir::Store>(part); });
    return is_straight ? forwarded(body, stmt->span) : nullptr;
  }

  Stmt forwarded(const std::vector<Stmt>& body, Span span) const {
    Named named;
    bool changed = false;
    std::vector<Stmt> all;
    for (size_t k = 0; k < body.size(); ++k) {
      Stmt part = named.rewrite(body[k]);
      changed |= part != body[k];
      const auto* given = ir::as<ir::Store>(part);
      if (given == nullptr) {
        all.push_back(std::move(part));
        continue;
      }
      const ir::Store store = *given;
      ir::Var name;
      if (is_memory(store.buffer) && !store.buffer->type.is_nibble() && is_loaded_after(body, k) &&
          !reads_memory(store.indices, store.buffer)) {
        name = ir::make_var(store.buffer->name + "_stored", store.buffer->type);
        all.push_back(ir::make_stmt(ir::Let{name, ir::cast(store.value, name->type)}, part->span));
        part = ir::make_stmt(ir::Store{store.buffer, store.indices, ir::var_ref(name)}, part->span);
      }
      named.store(store, name, is_inside(store));
      all.push_back(std::move(part));
    }
    return changed ? block(std::move(all), span) : nullptr;
  }

  Expr is_inside(const ir::Store& store) const {
    Expr inside;
    for (size_t axis = 0; axis < store.indices.size() && store.buffer->scope == ir::Scope::global; ++axis) {
      const Expr &at = store.indices[axis], &extent = store.buffer->shape[axis];
      if (facts_.in_bounds(at, extent)) continue;
      const ir::DType type = ir::promote(at->type, extent->type);
      inside = both(inside, ir::binary(ir::BinaryOp::ge, at, ir::int_imm(0, at->type), at->span));
      inside = both(inside, ir::binary(ir::BinaryOp::lt, ir::cast(at, type), ir::cast(extent, type), at->span));
    }
    return inside;
  }
};

}  // namespace

ir::Kernel with_stored_values(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = Forwarding(facts_of(kernel)).rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
