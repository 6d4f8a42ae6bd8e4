// Walking and rewriting the IR. A rewriter returns the same node when nothing below changed, so that "no change" is
// pointer equality. Exhaustive over node kinds: see visit.cpp.
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

// Bottom-up rewriting: override what changes.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Expr rewrite(const Expr& expr) { return rewrite_children(expr); }
  virtual Stmt rewrite(const Stmt& stmt) { return rewrite_children(stmt); }
  Program rewrite(const Program& program);

 protected:
  Expr rewrite_children(const Expr& expr);
  Stmt rewrite_children(const Stmt& stmt);
  Region rewrite_region(const Region& region);
};

// Replaces variables by expressions.
Expr substitute(const Expr& expr, const std::function<Expr(const Var&)>& replacement);
Stmt substitute(const Stmt& stmt, const std::function<Expr(const Var&)>& replacement);

}  // namespace tilepilot::ir
