#include "compiler/interpret/collectives.h"

#include <algorithm>

#include "compiler/interpret/evaluate.h"

namespace tilepilot::interpret {
namespace {

using ir::as;

bool has_local_region(const ir::Stmt& stmt) {
  const ir::Accesses accesses = ir::region_accesses(stmt);
  const auto is_local = [](const ir::Region* region) { return region->buffer->scope == ir::Scope::local; };
  return std::any_of(accesses.reads.begin(), accesses.reads.end(), is_local) ||
         std::any_of(accesses.writes.begin(), accesses.writes.end(), is_local);
}

// Goes down with the threads that come to each place.
class Grouping {
 public:
  Grouping(Session& session, const ir::Kernel& kernel) : session_(session), kernel_(kernel) {
    each({kernel.threads.rbegin(), kernel.threads.rend()}, [&](const Indices& reversed) {
      Scope scope;
      for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis) {
        const ir::Var& var = kernel.thread_vars[axis];
        scope.vars[var.get()] = Element::integer(var->type, reversed[reversed.size() - 1 - axis]);
      }
      threads_.push_back(std::move(scope));
    });
  }

  CollectiveGroups run() {
    visit(kernel_.body, std::vector<bool>(threads_.size(), true));
    return std::move(groups_);
  }

 private:
  Session& session_;
  const ir::Kernel& kernel_;
  std::vector<Scope> threads_;
  std::unordered_map<const ir::VarData*, ir::Expr> lets_;  // of thread indices alone
  CollectiveGroups groups_;

  // In terms of the thread variables, or null.
  ir::Expr by_thread(const ir::Expr& expr) const {
    const ir::Expr expanded = ir::substitute(expr, [&](const ir::Var& var) -> ir::Expr {
      const auto let = lets_.find(var.get());
      return let == lets_.end() ? nullptr : let->second;
    });
    bool only = true;
    ir::walk(expanded, [&](const ir::Expr& part) {
      const auto* ref = as<ir::VarRef>(part);
      only &= !as<ir::Load>(part) && (!ref || std::find(kernel_.thread_vars.begin(), kernel_.thread_vars.end(),
                                                        ref->var) != kernel_.thread_vars.end());
    });
    return only ? expanded : nullptr;
  }

  void branch(const ir::If& n, const std::vector<bool>& here) {
    std::vector<bool> then = here, otherwise = here;
    if (const ir::Expr condition = by_thread(n.condition)) {
      for (size_t k = 0; k < threads_.size(); ++k) {
        const bool holds = Evaluator(session_, threads_[k]).value(condition).truth();
        then[k] = then[k] && holds;
        otherwise[k] = otherwise[k] && !holds;
      }
    }
    visit(n.then, then);
    if (n.otherwise) visit(n.otherwise, otherwise);
  }

  void roles(const ir::Roles& n, std::vector<bool> here) {
    for (size_t k = 0; k < here.size(); ++k)
      here[k] = here[k] && std::find(n.groups.begin(), n.groups.end(), int(k / 128)) != n.groups.end();
    visit(n.body, here);
  }

  void visit(const ir::Stmt& stmt, const std::vector<bool>& here) {
    if (is_collective(stmt)) {
      if (std::find(here.begin(), here.end(), false) != here.end()) groups_[stmt.get()] = here;
      return;
    }
    std::visit(ir::overloaded{
                   [&](const ir::For& n) { visit(n.body, here); },
                   [&](const ir::While& n) { visit(n.body, here); },
                   [&](const ir::If& n) { branch(n, here); },
                   [&](const ir::Block& n) {
                     for (const ir::Stmt& child : n.body) visit(child, here);
                   },
                   [&](const ir::Let& n) {
                     if (ir::Expr value = by_thread(n.value)) lets_[n.var.get()] = std::move(value);
                   },
                   [&](const ir::Roles& n) { roles(n, here); },
                   [](const auto&) {},
               },
               stmt->node);
  }
};

}  // namespace

bool has_threads(const ir::Kernel& kernel) {
  bool found = !kernel.thread_vars.empty();
  ir::walk(
      kernel.body, [&](const ir::Stmt& stmt) { found |= as<ir::Roles>(stmt) != nullptr; }, [](const ir::Expr&) {});
  return found;
}

const ir::Concurrent* concurrent_roles(const ir::Kernel& kernel) {
  const auto* block = as<ir::Block>(kernel.body);
  return block && block->body.size() == 1 ? as<ir::Concurrent>(block->body[0]) : nullptr;
}

CollectiveGroups collective_groups(Session& session, const ir::Kernel& kernel) {
  return has_threads(kernel) ? Grouping(session, kernel).run() : CollectiveGroups{};
}

bool is_collective(const ir::Stmt& stmt) {
  if (ir::needs_all_threads(*stmt)) return true;
  if (const auto* loop = as<ir::For>(stmt)) return loop->kind == ir::LoopKind::parallel;
  const bool moves = as<ir::Copy>(stmt) || as<ir::Fill>(stmt);
  return ir::is_tile_operator(*stmt) && !(moves && has_local_region(stmt));
}

ir::BufferSet thread_private_buffers(const ir::Kernel& kernel) {
  ir::BufferSet met, own;
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        if (!is_collective(stmt) || ir::needs_all_threads(*stmt)) return;
        ir::each_effect(stmt, [&](const ir::Buffer& buffer, bool) { met.insert(ir::memory_of(buffer)); });
      },
      [](const ir::Expr&) {});
  for (const ir::Buffer& buffer : kernel.allocations) {
    const bool is_own = buffer->scope == ir::Scope::local ||
                        (buffer->scope == ir::Scope::fragment && met.count(ir::memory_of(buffer)) == 0);
    if (is_own) own.insert(buffer.get());
  }
  return own;
}

}  // namespace tilepilot::interpret
