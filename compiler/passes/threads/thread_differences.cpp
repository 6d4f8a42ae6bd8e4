#include "compiler/passes/threads/thread_differences.h"

#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"

namespace tilepilot::passes {

using namespace ir;

bool is_collective(const Stmt& s) {
  const auto* loop = as<For>(s);
  const auto* barrier = as<Barrier>(s);
  return as<Sync>(s) || (barrier && barrier->op == BarrierOp::wait) || (loop && loop->kind == LoopKind::parallel) ||
         is_tile_operator(*s);
}

bool is_loop(const Stmt& s) { return as<For>(s) || as<While>(s); }

bool is_jump(const Stmt& s) { return as<Break>(s) || as<Continue>(s); }

std::vector<Stmt> bodies(const Stmt& s) {
  if (const auto* n = as<For>(s)) return {n->body};
  if (const auto* n = as<While>(s)) return {n->body};
  if (const auto* n = as<Block>(s)) return n->body;
  if (const auto* n = as<If>(s))
    return n->otherwise ? std::vector<Stmt>{n->then, n->otherwise} : std::vector<Stmt>{n->then};
  return {};
}

bool may_jump_out(const Stmt& s) {
  if (is_loop(s)) return false;
  const std::vector<Stmt> below = bodies(s);
  return is_jump(s) || std::any_of(below.begin(), below.end(), may_jump_out);
}

namespace {

// Whether several groups of threads are combined, each into a value of its own.
bool gives_different(const AllReduce& n, const Kernel& kernel) {
  if (n.lanes > 0) return true;
  for (size_t axis = 0; axis < kernel.threads.size(); ++axis) {
    const bool combined = std::find(n.axes.begin(), n.axes.end(), int(axis)) != n.axes.end();
    if (!combined && kernel.threads[axis] > 1) return true;
  }
  return false;
}

}  // namespace

ThreadDifferences::ThreadDifferences(const Kernel& kernel) {
  for (const Var& var : kernel.thread_vars) vars_.insert(var.get());
  walk(
      kernel.body,
      [&](const Stmt& s) {
        if (is_collective(s)) note_collective(s);
        // Each thread finds what those before it left.
        if (const auto* n = as<Atomic>(s); n && n->previous) vars_.insert(n->previous.get());
        if (as<Shuffle>(s) || as<ExternCall>(s)) vars_.insert(bound_variable(*s).get());
        if (const auto* n = as<AllReduce>(s); n && gives_different(*n, kernel))
          buffers_.insert(memory_of(n->result.buffer));
        if (as<LoadMatrix>(s) || as<Mma>(s))
          for (const Region* region : region_accesses(s).writes) buffers_.insert(memory_of(region->buffer));
      },
      [](const Expr&) {});
  do {
    grown_ = false;
    propagate(kernel.body, false);
  } while (grown_);
}

void ThreadDifferences::note_collective(const Stmt& s) {
  const Accesses accesses = region_accesses(s);
  for (const auto* regions : {&accesses.reads, &accesses.writes}) {
    for (const Region* region : *regions) tiles_.insert(memory_of(region->buffer));
  }
  if (!as<For>(s)) return;
  walk(
      s,
      [&](const Stmt& part) {
        if (const auto* n = as<Store>(part)) tiles_.insert(memory_of(n->buffer));
        if (const auto* n = as<Atomic>(part)) tiles_.insert(memory_of(n->element.buffer));
      },
      [&](const Expr& part) {
        if (const auto* n = as<Load>(part)) tiles_.insert(memory_of(n->buffer));
      });
}

bool ThreadDifferences::may_be_own(const BufferData& buffer) const {
  if (buffer.scope == Scope::local) return true;
  return buffer.scope == Scope::fragment && !memory_of(buffer)->reducer && tiles_.count(memory_of(buffer)) == 0;
}

bool ThreadDifferences::differs(const Expr& e) const {
  bool found = false;
  walk(e, [&](const Expr& part) {
    if (const auto* n = as<VarRef>(part)) found |= vars_.count(n->var.get()) > 0;
    if (const auto* n = as<Load>(part)) found |= buffers_.count(memory_of(n->buffer)) > 0;
  });
  return found;
}

bool ThreadDifferences::differs(const std::vector<Expr>& exprs) const {
  return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return differs(e); });
}

bool ThreadDifferences::leaves_apart(const Stmt& s) const {
  if (is_jump(s)) return jumps_.count(s.get()) > 0;
  if (is_loop(s)) return false;
  const std::vector<Stmt> inner = bodies(s);
  return std::any_of(inner.begin(), inner.end(), [&](const Stmt& child) { return leaves_apart(child); });
}

bool ThreadDifferences::divides(const Stmt& s) const {
  if (const auto* n = as<If>(s)) return differs(n->condition);
  if (const auto* n = as<For>(s)) return differs(n->extents) || leaves_apart(n->body);
  if (const auto* n = as<While>(s)) return differs(n->condition) || leaves_apart(n->body);
  return false;
}

// `apart`: not all threads are here.
void ThreadDifferences::propagate(const Stmt& s, bool apart) {
  propagate_here(s, apart);
  apart |= divides(s);
  if (apart && is_jump(s)) grown_ |= jumps_.insert(s.get()).second;
  for (const Stmt& child : bodies(s)) propagate(child, apart);
}

void ThreadDifferences::propagate_here(const Stmt& s, bool apart) {
  if (const auto* n = as<Let>(s)) {
    if (differs(n->value)) grown_ |= vars_.insert(n->var.get()).second;
  } else if (const auto* n = as<Store>(s)) {
    const bool different = apart || differs(n->indices) || differs(n->value);
    if (different && may_be_own(*n->buffer)) grown_ |= buffers_.insert(memory_of(n->buffer)).second;
  } else if (const auto* n = as<Atomic>(s)) {
    if (may_be_own(*n->element.buffer)) grown_ |= buffers_.insert(memory_of(n->element.buffer)).second;
  } else if (const auto* n = as<For>(s); n && differs(n->extents)) {
    for (const Var& var : n->vars) grown_ |= vars_.insert(var.get()).second;
  }
}

}  // namespace tilepilot::passes
