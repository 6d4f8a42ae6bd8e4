// Walking and rewriting the IR. A rewriter returns the same node when nothing below changed, so that "no change" is
// pointer equality. Exhaustive over node kinds: see visit.cpp. Buffers are named, not entered: their shapes stay.
#pragma once

#include <functional>

#include "compiler/ir/stmt.h"

namespace tilepilot::ir {

// `overloaded{...}` for std::visit.
template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

// Calls `on_expr` for every expression and `on_stmt` for every statement below, parents first.
void walk(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr);
void walk(const Expr& expr, const std::function<void(const Expr&)>& on_expr);

// The regions that a tile operator reads and writes; a gemm or reduction that accumulates reads what it writes. Empty
// for other statements.
struct Accesses {
  std::vector<const Region*> reads, writes;
};
Accesses tile_accesses(const Stmt& stmt);

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
  Region rewrite_region(const Region& region);
  std::vector<Expr> rewrite_all(const std::vector<Expr>& exprs);
};

// True if no node of the program was replaced.
bool same_nodes(const Program& a, const Program& b);

// Replaces variables by expressions; a null replacement keeps the variable.
Expr substitute(const Expr& expr, const std::function<Expr(const Var&)>& replacement);
Stmt substitute(const Stmt& stmt, const std::function<Expr(const Var&)>& replacement);

}  // namespace tilepilot::ir
