// Walking and rewriting the IR. A rewriter returns the same node when nothing below changed, so that "no change" is
// pointer equality. Exhaustive over node kinds: see visit.cpp. Buffers are named, not entered: their shapes stay.
#pragma once

#include <functional>
#include <unordered_set>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// `overloaded{...}` for std::visit.
template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

// The statement or expression as one of its kinds, or null.
template <class T>
const T* as(const Stmt& stmt) {
  return std::get_if<T>(&stmt->node);
}
template <class T>
const T* as(const Expr& expr) {
  return std::get_if<T>(&expr->node);
}

// Works on whole tiles, all threads of the block together: copy, fill, gemm, reduce, scan.
bool is_tile_operator(const StmtNode& stmt);
// Whether the threads of a warp do it together.
bool is_warp_operation(const StmtNode& stmt);
// Whether it waits for other threads, those of the block or of the warp: barriers, reductions, what warps do together.
bool needs_all_threads(const StmtNode& stmt);
// The variable that the statement binds for those after it: of a let, an atomic's previous value, what a shuffle or a
// foreign function gives; else null.
Var bound_variable(const StmtNode& stmt);

// Calls `on_expr` for every expression and `on_stmt` for every statement below, parents first.
void walk(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr);
void walk(const Expr& expr, const std::function<void(const Expr&)>& on_expr);

// The regions that a statement reads and writes; a gemm or reduction that accumulates reads what it writes. Empty for
// statements without regions: loads and stores of elements are not among them.
struct Accesses {
  std::vector<const Region*> reads, writes;
};
Accesses region_accesses(const Stmt& stmt);

// The views of a kernel and what they view, buffers by address and what holds it: a write to one may change others.
std::unordered_set<const BufferData*> sharing_buffers(const Kernel& kernel);
// Bottom-up rewriting: override what changes. A statement rewritten to null leaves its block; a body never is null.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Expr rewrite(const Expr& expr) { return rewrite_children(expr); }
  virtual Stmt rewrite(const Stmt& stmt) { return rewrite_children(stmt); }
  virtual Kernel rewrite(const Kernel& kernel) { return rewrite_children(kernel); }
  Program rewrite(const Program& program);

 protected:
  Expr rewrite_children(const Expr& expr);
  Stmt rewrite_children(const Stmt& stmt);
  Kernel rewrite_children(const Kernel& kernel);
  virtual Region rewrite_region(const Region& region);
  std::vector<Expr> rewrite_all(const std::vector<Expr>& exprs);
};

// True if no node of the program was replaced.
bool same_nodes(const Program& a, const Program& b);

// Replaces variables by expressions; a null replacement keeps the variable.
Expr substitute(const Expr& expr, const std::function<Expr(const Var&)>& replacement);
Stmt substitute(const Stmt& stmt, const std::function<Expr(const Var&)>& replacement);

}  // namespace tilepilot::ir
