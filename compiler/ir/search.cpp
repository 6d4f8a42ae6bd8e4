#include "compiler/ir/search.h"

#include <algorithm>

namespace tilepilot::ir {

bool contains(const Stmt& stmt, const std::function<bool(const Stmt&)>& wanted) {
  bool found = false;
  walk(
      stmt, [&](const Stmt& part) { found = found || wanted(part); }, [](const Expr&) {});
  return found;
}

bool has_loads(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& part) { found = found || as<Load>(part) != nullptr; });
  return found;
}

bool mentions(const Expr& expr, const Variables& vars) {
  bool found = false;
  walk(expr, [&](const Expr& part) {
    const auto* ref = as<VarRef>(part);
    found = found || (ref != nullptr && vars.count(ref->var.get()) > 0);
  });
  return found;
}

bool is_extent(const Program& program, const Var& symbol) {
  return std::any_of(program.parameters.begin(), program.parameters.end(), [&](const auto& parameter) {
    const auto* buffer = std::get_if<Buffer>(&parameter);
    return buffer != nullptr && mentions((*buffer)->shape, symbol);
  });
}

namespace {

bool names(const Expr& expr, const Var& var) {
  const auto* ref = as<VarRef>(expr);
  return ref != nullptr && ref->var == var;
}

}  // namespace

bool mentions(const Expr& expr, const Var& var) {
  bool found = false;
  walk(expr, [&](const Expr& part) { found = found || names(part, var); });
  return found;
}

bool mentions(const std::vector<Expr>& exprs, const Var& var) {
  return std::any_of(exprs.begin(), exprs.end(), [&](const Expr& expr) { return mentions(expr, var); });
}

bool mentions(const Stmt& stmt, const Var& var) {
  bool found = false;
  walk(
      stmt, [](const Stmt&) {}, [&](const Expr& part) { found = found || names(part, var); });
  return found;
}

bool mentions(const Stmt& stmt, const Variables& vars) {
  bool found = false;
  if (vars.empty()) return found;
  walk(
      stmt, [](const Stmt&) {}, [&](const Expr& part) { found = found || mentions(part, vars); });
  return found;
}

Variables bound_in(const Stmt& stmt) {
  Variables result;
  walk(
      stmt,
      [&](const Stmt& part) {
        if (const Var var = bound_variable(*part)) result.insert(var.get());
        if (const auto* loop = as<For>(part)) {
          for (const Var& var : loop->vars) result.insert(var.get());
        }
      },
      [](const Expr&) {});
  return result;
}

std::vector<Stmt> statements(const Stmt& stmt) {
  if (const auto* block = as<Block>(stmt)) return block->body;
  return {stmt};
}

}  // namespace tilepilot::ir
