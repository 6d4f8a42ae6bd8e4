#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

class Walker {
 public:
  Walker(const std::function<void(const Stmt&)>& on_stmt, const std::function<void(const Expr&)>& on_expr)
      : on_stmt_(on_stmt), on_expr_(on_expr) {}

  void visit(const Expr& e) {
    on_expr_(e);
    std::visit(overloaded{
                   [](const IntImm&) {},
                   [](const FloatImm&) {},
                   [](const VarRef&) {},
                   [&](const Load& n) { visit(n.indices); },
                   [&](const Unary& n) { visit(n.operand); },
                   [&](const Binary& n) { visit(n.left), visit(n.right); },
                   [&](const Math& n) { visit(n.argument); },
                   [&](const Select& n) { visit(n.condition), visit(n.then), visit(n.otherwise); },
                   [&](const Cast& n) { visit(n.value); },
                   [&](const Reinterpret& n) { visit(n.value); },
               },
               e->node);
  }

  void visit(const Stmt& s) {
    on_stmt_(s);
    std::visit(overloaded{
                   [&](const For& n) { visit(n.extents), visit(n.body); },
                   [&](const While& n) { visit(n.condition), visit(n.body); },
                   [&](const If& n) {
                     visit(n.condition), visit(n.then);
                     if (n.otherwise) visit(n.otherwise);
                   },
                   [&](const Let& n) { visit(n.value); },
                   [&](const Store& n) { visit(n.indices), visit(n.value); },
                   [](const Break&) {},
                   [](const Continue&) {},
                   [](const Sync&) {},
                   [&](const Block& n) {
                     for (const Stmt& child : n.body) visit(child);
                   },
                   [&](const Copy& n) {
                     visit(n.source.start), visit(n.destination.start);
                     if (n.barrier) visit(n.barrier->start);
                     if (n.peer) visit(n.peer);
                   },
                   [&](const Fill& n) { visit(n.destination.start), visit(n.value); },
                   [&](const Gemm& n) { visit(n.a.start), visit(n.b.start), visit(n.c.start); },
                   [&](const Reduce& n) { visit(n.source.start), visit(n.destination.start); },
                   [&](const Scan& n) { visit(n.source.start), visit(n.destination.start); },
                   [&](const Atomic& n) {
                     visit(n.element.start);
                     if (n.value) visit(n.value);
                   },
                   [&](const AllReduce& n) {
                     visit(n.value), visit(n.condition), visit(n.identity);
                     visit(n.result.start);
                   },
                   [&](const Shuffle& n) { visit(n.value), visit(n.lane); },
                   [&](const LoadMatrix& n) { visit(n.row.start), visit(n.registers.start); },
                   [&](const Mma& n) { visit(n.a.start), visit(n.b.start), visit(n.c.start); },
                   [&](const Barrier& n) {
                     visit(n.barrier.start);
                     if (n.operand) visit(n.operand);
                     if (n.peer) visit(n.peer);
                   },
                   [](const Async&) {},
                   [&](const Roles& n) { visit(n.body); },
                   [&](const Concurrent& n) {
                     for (const Concurrent::Role& role : n.roles) visit(role.body);
                   },
                   [&](const Check& n) { visit(n.condition); },
                   [&](const Print& n) {
                     if (n.index) visit(n.index);
                     if (n.value) visit(n.value);
                     visit(n.thread);
                   },
                   [&](const ExternCall& n) {
                     for (const auto& argument : n.arguments) visit(argument);
                   },
               },
               s->node);
  }

 private:
  const std::function<void(const Stmt&)>& on_stmt_;
  const std::function<void(const Expr&)>& on_expr_;

  void visit(const std::vector<Expr>& exprs) {
    for (const Expr& e : exprs) visit(e);
  }
  void visit(const std::variant<Expr, Region>& argument) {
    const auto* region = std::get_if<Region>(&argument);
    region ? visit(region->start) : visit(std::get<Expr>(argument));
  }
};

// Puts `fresh` into `slot`; true if that changed it.
template <class T>
bool replace(T& slot, T fresh) {
  if (slot == fresh) return false;
  slot = std::move(fresh);
  return true;
}

bool replace(Region& slot, Region fresh) {
  const bool changed = slot.buffer != fresh.buffer || slot.start != fresh.start || slot.extent != fresh.extent;
  if (changed) slot = std::move(fresh);
  return changed;
}

Stmt body_or_empty(Stmt body, Span span) { return body ? std::move(body) : make_stmt(Block{}, span); }

class Substitution : public Rewriter {
 public:
  explicit Substitution(const std::function<Expr(const Var&)>& replacement) : replacement_(replacement) {}
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    const auto* ref = std::get_if<VarRef>(&e->node);
    if (!ref) return rewrite_children(e);
    Expr fresh = replacement_(ref->var);
    return fresh ? fresh : e;
  }

 private:
  const std::function<Expr(const Var&)>& replacement_;
};

}  // namespace

void walk(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr) {
  Walker(on_stmt, on_expr).visit(stmt);
}

void walk(const Expr& expr, const std::function<void(const Expr&)>& on_expr) {
  const std::function<void(const Stmt&)> nothing = [](const Stmt&) {};
  Walker(nothing, on_expr).visit(expr);
}

bool is_tile_operator(const StmtNode& stmt) {
  return std::visit(overloaded{
                        [](const Copy&) { return true; },
                        [](const Fill&) { return true; },
                        [](const Gemm&) { return true; },
                        [](const Reduce&) { return true; },
                        [](const Scan&) { return true; },
                        [](const auto&) { return false; },
                    },
                    stmt.node);
}

bool is_warp_operation(const StmtNode& stmt) {
  return std::visit(overloaded{
                        [](const Shuffle&) { return true; },
                        [](const LoadMatrix&) { return true; },
                        [](const Mma&) { return true; },
                        [](const Sync& n) { return n.scope == SyncScope::warp; },
                        [](const AllReduce& n) { return n.lanes > 0; },
                        [](const auto&) { return false; },
                    },
                    stmt.node);
}

bool needs_all_threads(const StmtNode& stmt) {
  return is_warp_operation(stmt) || std::holds_alternative<Sync>(stmt.node) ||
         std::holds_alternative<AllReduce>(stmt.node);
}

Var bound_variable(const StmtNode& stmt) {
  if (const auto* n = std::get_if<Let>(&stmt.node)) return n->var;
  if (const auto* n = std::get_if<Atomic>(&stmt.node)) return n->previous;
  if (const auto* n = std::get_if<Shuffle>(&stmt.node)) return n->result;
  if (const auto* n = std::get_if<ExternCall>(&stmt.node)) return n->result;
  return nullptr;
}

Accesses region_accesses(const Stmt& stmt) {
  const auto none = [](const auto&) { return Accesses{}; };
  return std::visit(overloaded{
                        [](const Copy& n) {
                          Accesses result{{&n.source}, {&n.destination}};
                          if (n.barrier) result.writes.push_back(&*n.barrier);
                          return result;
                        },
                        [](const Fill& n) {
                          return Accesses{{}, {&n.destination}};
                        },
                        [](const Gemm& n) {
                          Accesses result{{&n.a, &n.b}, {&n.c}};
                          if (!n.clear_accumulator) result.reads.push_back(&n.c);
                          return result;
                        },
                        [](const Reduce& n) {
                          Accesses result{{&n.source}, {&n.destination}};
                          if (!n.clear) result.reads.push_back(&n.destination);
                          return result;
                        },
                        [](const Scan& n) {
                          return Accesses{{&n.source}, {&n.destination}};
                        },
                        [](const Atomic& n) {
                          Accesses result;
                          if (n.op != AtomicOp::store || n.previous) result.reads.push_back(&n.element);
                          if (n.op != AtomicOp::load) result.writes.push_back(&n.element);
                          return result;
                        },
                        [](const AllReduce& n) {
                          return Accesses{{}, {&n.result}};
                        },
                        [](const LoadMatrix& n) {
                          return Accesses{{&n.row}, {&n.registers}};
                        },
                        [](const Mma& n) {
                          return Accesses{{&n.a, &n.b, &n.c}, {&n.c}};
                        },
                        [](const Barrier& n) {
                          return Accesses{{&n.barrier}, {&n.barrier}};
                        },
                        [](const ExternCall& n) {
                          // It may do anything with what it gets the address of.
                          Accesses result;
                          for (const auto& argument : n.arguments) {
                            const auto* region = std::get_if<Region>(&argument);
                            if (!region) continue;
                            result.reads.push_back(region);
                            result.writes.push_back(region);
                          }
                          return result;
                        },
                        none,
                    },
                    stmt->node);
}

std::unordered_set<const BufferData*> sharing_buffers(const Kernel& kernel) {
  std::unordered_set<const BufferData*> result;
  for (const Buffer& buffer : kernel.allocations) {
    const Buffer& source = buffer->base ? buffer->base : buffer->address;
    if (!source) continue;
    result.insert(buffer.get());
    result.insert(source.get());
  }
  return result;
}

std::vector<Expr> Rewriter::rewrite_all(const std::vector<Expr>& exprs) {
  std::vector<Expr> result;
  result.reserve(exprs.size());
  for (const Expr& e : exprs) result.push_back(rewrite(e));
  return result;
}

Region Rewriter::rewrite_region(const Region& region) {
  Region result = region;
  result.start = rewrite_all(region.start);
  return result;
}

Expr Rewriter::rewrite_children(const Expr& expr) {
  // A copy of the node with its children rewritten, or the node itself.
  const auto rebuilt = [&](auto node, bool changed) {
    return changed ? std::make_shared<ExprNode>(ExprNode{std::move(node), expr->type, expr->span}) : expr;
  };
  return std::visit(overloaded{
                        [&](const IntImm&) { return expr; },
                        [&](const FloatImm&) { return expr; },
                        [&](const VarRef&) { return expr; },
                        [&](Load n) {
                          const bool changed = replace(n.indices, rewrite_all(n.indices));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Unary n) {
                          const bool changed = replace(n.operand, rewrite(n.operand));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Binary n) {
                          bool changed = replace(n.left, rewrite(n.left));
                          changed |= replace(n.right, rewrite(n.right));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Math n) {
                          const bool changed = replace(n.argument, rewrite(n.argument));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Select n) {
                          bool changed = replace(n.condition, rewrite(n.condition));
                          changed |= replace(n.then, rewrite(n.then));
                          changed |= replace(n.otherwise, rewrite(n.otherwise));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Cast n) {
                          const bool changed = replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Reinterpret n) {
                          const bool changed = replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                    },
                    expr->node);
}

Stmt Rewriter::rewrite_children(const Stmt& stmt) {
  const Span span = stmt->span;
  const auto rebuilt = [&](auto node, bool changed) { return changed ? make_stmt(std::move(node), span) : stmt; };
  const auto body = [&](const Stmt& s) { return body_or_empty(rewrite(s), s->span); };
  return std::visit(overloaded{
                        [&](For n) {
                          bool changed = replace(n.extents, rewrite_all(n.extents));
                          changed |= replace(n.body, body(n.body));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](While n) {
                          bool changed = replace(n.condition, rewrite(n.condition));
                          changed |= replace(n.body, body(n.body));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](If n) {
                          bool changed = replace(n.condition, rewrite(n.condition));
                          changed |= replace(n.then, body(n.then));
                          if (n.otherwise) changed |= replace(n.otherwise, rewrite(n.otherwise));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Let n) {
                          const bool changed = replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Store n) {
                          bool changed = replace(n.indices, rewrite_all(n.indices));
                          changed |= replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](const Break&) { return stmt; },
                        [&](const Continue&) { return stmt; },
                        [&](const Sync&) { return stmt; },
                        [&](const Block& n) {
                          Block fresh;
                          for (const Stmt& child : n.body) {
                            if (Stmt rewritten = rewrite(child)) fresh.body.push_back(std::move(rewritten));
                          }
                          const bool changed = fresh.body != n.body;
                          return rebuilt(std::move(fresh), changed);
                        },
                        [&](Copy n) {
                          bool changed = replace(n.source, rewrite_region(n.source));
                          changed |= replace(n.destination, rewrite_region(n.destination));
                          if (n.barrier) changed |= replace(*n.barrier, rewrite_region(*n.barrier));
                          if (n.peer) changed |= replace(n.peer, rewrite(n.peer));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Fill n) {
                          bool changed = replace(n.destination, rewrite_region(n.destination));
                          changed |= replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Gemm n) {
                          bool changed = replace(n.a, rewrite_region(n.a));
                          changed |= replace(n.b, rewrite_region(n.b));
                          changed |= replace(n.c, rewrite_region(n.c));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Reduce n) {
                          bool changed = replace(n.source, rewrite_region(n.source));
                          changed |= replace(n.destination, rewrite_region(n.destination));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Scan n) {
                          bool changed = replace(n.source, rewrite_region(n.source));
                          changed |= replace(n.destination, rewrite_region(n.destination));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Atomic n) {
                          bool changed = replace(n.element, rewrite_region(n.element));
                          if (n.value) changed |= replace(n.value, rewrite(n.value));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](AllReduce n) {
                          bool changed = replace(n.value, rewrite(n.value));
                          changed |= replace(n.condition, rewrite(n.condition));
                          changed |= replace(n.identity, rewrite(n.identity));
                          changed |= replace(n.result, rewrite_region(n.result));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Shuffle n) {
                          bool changed = replace(n.value, rewrite(n.value));
                          changed |= replace(n.lane, rewrite(n.lane));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](LoadMatrix n) {
                          bool changed = replace(n.row, rewrite_region(n.row));
                          changed |= replace(n.registers, rewrite_region(n.registers));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Mma n) {
                          bool changed = replace(n.a, rewrite_region(n.a));
                          changed |= replace(n.b, rewrite_region(n.b));
                          changed |= replace(n.c, rewrite_region(n.c));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Barrier n) {
                          bool changed = replace(n.barrier, rewrite_region(n.barrier));
                          if (n.operand) changed |= replace(n.operand, rewrite(n.operand));
                          if (n.peer) changed |= replace(n.peer, rewrite(n.peer));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](const Async&) { return stmt; },
                        [&](Roles n) {
                          const bool changed = replace(n.body, body(n.body));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Concurrent n) {
                          bool changed = false;
                          for (Concurrent::Role& role : n.roles) changed |= replace(role.body, body(role.body));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Check n) {
                          const bool changed = replace(n.condition, rewrite(n.condition));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](Print n) {
                          bool changed = n.index && replace(n.index, rewrite(n.index));
                          if (n.value) changed |= replace(n.value, rewrite(n.value));
                          changed |= replace(n.thread, rewrite_all(n.thread));
                          return rebuilt(std::move(n), changed);
                        },
                        [&](ExternCall n) {
                          bool changed = false;
                          for (auto& argument : n.arguments) {
                            auto* region = std::get_if<Region>(&argument);
                            changed |= region ? replace(*region, rewrite_region(*region))
                                              : replace(std::get<Expr>(argument), rewrite(std::get<Expr>(argument)));
                          }
                          return rebuilt(std::move(n), changed);
                        },
                    },
                    stmt->node);
}

Kernel Rewriter::rewrite_children(const Kernel& kernel) {
  Kernel result = kernel;
  result.grid = rewrite_all(kernel.grid);
  result.body = body_or_empty(rewrite(kernel.body), kernel.body->span);
  return result;
}

Program Rewriter::rewrite(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) kernel = rewrite(kernel);
  return result;
}

bool same_nodes(const Program& a, const Program& b) {
  if (a.parameters != b.parameters || a.symbols != b.symbols || a.workspaces != b.workspaces ||
      a.sources != b.sources || a.kernels.size() != b.kernels.size()) {
    return false;
  }
  for (size_t k = 0; k < a.kernels.size(); ++k) {
    const Kernel &x = a.kernels[k], &y = b.kernels[k];
    if (x.body != y.body || x.grid != y.grid || x.block_vars != y.block_vars || x.threads != y.threads ||
        x.thread_vars != y.thread_vars || x.allocations != y.allocations) {
      return false;
    }
  }
  return true;
}

Expr substitute(const Expr& expr, const std::function<Expr(const Var&)>& replacement) {
  return Substitution(replacement).rewrite(expr);
}

Stmt substitute(const Stmt& stmt, const std::function<Expr(const Var&)>& replacement) {
  return Substitution(replacement).rewrite(stmt);
}

}  // namespace tilepilot::ir
