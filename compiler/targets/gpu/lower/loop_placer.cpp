// Statements of an iteration where it stands.
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/lower/loop_lowering.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;

Expr LoopLowering::Placer::rewrite(const Expr& expr) {
  if (const auto known = loads.find(expr.get()); known != loads.end()) return known->second;
  if (const auto* ref = ir::as<ir::VarRef>(expr)) {
    const auto own = own_.find(ref->var.get());
    if (own != own_.end()) return ir::var_ref(own->second, expr->span);
    const Expr place = loop_.at_place(ref->var, at_);
    return place ? place : expr;
  }
  const auto* load = ir::as<ir::Load>(expr);
  const auto place = load ? places().find(load->buffer.get()) : places().end();
  if (load == nullptr || place == places().end()) return rewrite_children(expr);
  return ir::load(place->second, indices(load->buffer, load->indices), expr->span);
}

Stmt LoopLowering::Placer::rewrite(const Stmt& stmt) {
  if (const auto* store = ir::as<ir::Store>(stmt)) return rewrite_store(stmt, *store);
  if (const auto* atomic = ir::as<ir::Atomic>(stmt)) return rewrite_atomic(stmt, *atomic);
  if (const auto* let = ir::as<ir::Let>(stmt)) {
    const Expr value = rewrite(let->value);
    return ir::make_stmt(ir::Let{own(let->var), value}, stmt->span);
  }
  const Stmt inner = rewrite_children(stmt);
  if (const auto* node = ir::as<ir::ExternCall>(inner); node && node->result) {
    ir::ExternCall result = *node;
    result.result = own(node->result);
    return ir::make_stmt(std::move(result), stmt->span);
  }
  return ir::as<ir::Barrier>(stmt) || ir::as<ir::Print>(stmt) ? once(inner) : inner;
}

std::vector<Expr> LoopLowering::Placer::indices(const Buffer& buffer, const std::vector<Expr>& given) {
  if (buffer->scope == Scope::fragment) return {loop_.register_of(buffer, key(given))};
  Indices narrow;
  for (const Expr& index : given) narrow.push_back(ir::cast(rewrite(index), ir::kInt32));
  if (!places().contains(buffer.get())) return narrow;
  return {offset_in(loop_.lowering_.inference.tiles.at(buffer.get()), narrow)};
}

Stmt LoopLowering::Placer::by_first(Stmt stmt, const Buffer& buffer) const {
  const bool seen = buffer->scope == Scope::global || buffer->scope == Scope::shared;
  return loop_.first_ && seen ? ir::make_stmt(ir::If{loop_.first_, stmt, nullptr}, stmt->span) : stmt;
}

Stmt LoopLowering::Placer::once(const Stmt& stmt) const {
  return loop_.first_ ? ir::make_stmt(ir::If{loop_.first_, stmt, nullptr}, stmt->span) : stmt;
}

Stmt LoopLowering::Placer::rewrite_store(const Stmt& stmt, const ir::Store& store) {
  const Expr value = rewrite(store.value);
  if (const auto held = loop_.held_.find(stmt.get()); held != loop_.held_.end())
    return ir::make_stmt(ir::Store{held->second, {loop_.place_in_matrices()}, value}, stmt->span);
  if (const auto vector = stores.find(stmt.get()); vector != stores.end())
    return ir::make_stmt(ir::Store{vector->second.registers, {vector->second.index}, value}, stmt->span);
  const auto place = places().find(store.buffer.get());
  if (place == places().end()) {
    std::vector<Expr> at;
    for (const Expr& index : store.indices) at.push_back(rewrite(index));
    return by_first(ir::make_stmt(ir::Store{store.buffer, at, value}, stmt->span), store.buffer);
  }
  return by_first(ir::make_stmt(ir::Store{place->second, indices(store.buffer, store.indices), value}, stmt->span),
                  store.buffer);
}

Stmt LoopLowering::Placer::rewrite_atomic(const Stmt& stmt, const ir::Atomic& atomic) {
  if (const auto vector = stores.find(stmt.get()); vector != stores.end())
    return ir::make_stmt(ir::Store{vector->second.registers, {vector->second.index}, rewrite(atomic.value)},
                         stmt->span);
  ir::Atomic result = atomic;
  if (result.value) result.value = rewrite(atomic.value);
  const auto place = places().find(atomic.element.buffer.get());
  if (place == places().end())
    for (Expr& index : result.element.start) index = rewrite(index);
  else
    result.element = gpu::element(place->second, indices(atomic.element.buffer, atomic.element.start), stmt->span);
  if (loop_.first_ && atomic.previous && is_seen_by_others(*atomic.element.buffer))
    loop_.lowering_.fail(
        stmt->span, "the value before an atomic operation is wanted by several threads that do the same iteration");
  result.previous = own(atomic.previous);
  return by_first(ir::make_stmt(std::move(result), stmt->span), atomic.element.buffer);
}

}  // namespace tilepilot::targets::gpu
