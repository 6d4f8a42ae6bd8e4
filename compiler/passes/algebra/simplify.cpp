#include "compiler/passes/algebra/simplify.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "compiler/ir/search.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

bool is_empty(const Stmt& s) {
  const auto* block = s ? std::get_if<Block>(&s->node) : nullptr;
  return !s || (block && block->body.empty());
}

bool has_let(const Block& block) {
  return std::any_of(block.body.begin(), block.body.end(), [](const Stmt& s) { return bound_variable(*s) != nullptr; });
}

// Whether a break or continue of `s` leaves `s`: none inside a loop of its own does.
bool jumps_out(const Stmt& s) {
  return std::visit(overloaded{
                        [](const Break&) { return true; },
                        [](const Continue&) { return true; },
                        [](const If& n) { return jumps_out(n.then) || (n.otherwise && jumps_out(n.otherwise)); },
                        [](const Block& n) { return std::any_of(n.body.begin(), n.body.end(), jumps_out); },
                        [](const auto&) { return false; },
                    },
                    s->node);
}

std::unordered_map<const VarData*, int> count_uses(const Stmt& body) {
  std::unordered_map<const VarData*, int> uses;
  walk(
      body, [](const Stmt&) {},
      [&](const Expr& e) {
        if (const auto* ref = std::get_if<VarRef>(&e->node)) ++uses[ref->var.get()];
      });
  return uses;
}

class Simplifier : public Rewriter {
 public:
  Simplifier(const Program& program, const VarRanges& known) : ranges_(known) {
    // An extent of a tensor is not negative.
    for (const Var& symbol : program.symbols) ranges_[symbol.get()] = {0, type_bounds(symbol->type).hi};
  }
  using Rewriter::rewrite;

  Expr rewrite(const Expr& e) override {
    const Expr known = values_.empty() ? e : substitute(e, [&](const Var& v) { return value_of(v); });
    return simplify(known, ranges_);
  }

  Kernel rewrite(const Kernel& kernel) override {
    const VarRanges outside = ranges_;
    Kernel result = kernel;
    result.grid = rewrite_all(kernel.grid);
    for (size_t k = 0; k < result.grid.size(); ++k) {
      set_range(kernel.block_vars[k], bounds(result.grid[k], ranges_).hi);
    }
    for (size_t k = 0; k < kernel.thread_vars.size(); ++k) set_range(kernel.thread_vars[k], kernel.threads[k]);
    uses_ = count_uses(kernel.body);
    by_threads_ = !kernel.thread_vars.empty() || contains<Roles>(kernel.body);
    result.body = as_block(rewrite(kernel.body), kernel.body->span);
    ranges_ = outside;
    return result;
  }

  Stmt rewrite(const Stmt& s) override {
    return std::visit(overloaded{
                          [&](const For& n) { return loop(n, s); },
                          [&](const While& n) { return while_loop(n, s); },
                          [&](const If& n) { return branch(n, s); },
                          [&](const Let& n) { return definition(n, s); },
                          [&](const Block& n) { return block(n, s); },
                          [&](const auto&) { return rewrite_children(s); },
                      },
                      s->node);
  }

 private:
  VarRanges ranges_;
  std::unordered_map<const VarData*, Expr> values_;  // of variables that are replaced
  std::unordered_map<const VarData*, int> uses_;
  std::vector<Let> definitions_;  // of integers, those whose range is known from what they are computed of
  bool by_threads_ = false;       // statements outside parallel loops are done by each thread for itself

  Expr value_of(const Var& v) const {
    const auto found = values_.find(v.get());
    return found == values_.end() ? nullptr : found->second;
  }

  // A statement may stand in several places: what held of its variables in the last place is forgotten.
  void set_range(const Var& v, int64_t extent) {
    values_.erase(v.get());
    ranges_[v.get()] = {0, std::max<int64_t>(extent, 1) - 1};
  }

  static Stmt as_block(Stmt s, Span span) {
    if (s && std::holds_alternative<Block>(s->node)) return s;
    Block block;
    if (s) block.body.push_back(std::move(s));
    return make_stmt(std::move(block), span);
  }

  // A body rewritten under what `condition` says; never null.
  Stmt body(const Stmt& s) {
    Stmt result = rewrite(s);
    return result ? result : make_stmt(Block{}, s->span);
  }
  Stmt body_under(const Expr& condition, bool holds, const Stmt& s) {
    const VarRanges outside = ranges_;
    ranges_ = assume(with_definitions(condition), holds, ranges_);
    narrow_definitions();
    Stmt result = body(s);
    ranges_ = outside;
    return result;
  }

  // Conditions that have names, written out.
  Expr with_definitions(const Expr& condition) const {
    return substitute(condition, [&](const Var& var) -> Expr {
      const auto known = std::find_if(definitions_.rbegin(), definitions_.rend(),
                                      [&](const Let& let) { return let.var == var && var->type.is_bool(); });
      return known == definitions_.rend() ? nullptr : known->value;
    });
  }

  // What a condition says of a variable holds of what was computed of it before.
  void narrow_definitions() {
    for (const Let& let : definitions_) {
      const auto known = ranges_.find(let.var.get());
      if (known == ranges_.end()) continue;  // of a branch that has ended
      Bounds& range = known->second;
      const Bounds computed = bounds(let.value, ranges_);
      const Bounds both{std::max(range.lo, computed.lo), std::min(range.hi, computed.hi)};
      if (both.lo <= both.hi) range = both;
    }
  }

  Stmt loop(const For& n, const Stmt& s) {
    For fresh = n;
    fresh.extents = rewrite_all(n.extents);
    for (size_t k = 0; k < n.vars.size(); ++k) {
      const Bounds extent = bounds(fresh.extents[k], ranges_);
      if (extent.hi <= 0) return nullptr;
      set_range(n.vars[k], extent.hi);
    }
    if (!jumps_out(n.body)) drop_single_iterations(fresh);
    fresh.body = body(n.body);
    if (is_empty(fresh.body)) return nullptr;
    if (fresh.vars.empty()) return fresh.body;
    const bool same = fresh.body == n.body && fresh.extents == n.extents;
    return same ? s : make_stmt(std::move(fresh), s->span);
  }

  // Axes of extent 1: their variable is 0. What threads share stays a loop.
  void drop_single_iterations(For& loop) {
    std::vector<Var> vars;
    std::vector<Expr> extents;
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      const bool is_last = by_threads_ && loop.kind == LoopKind::parallel && vars.empty() && k + 1 == loop.vars.size();
      if (constant_int(loop.extents[k]) == 1 && !is_last) {
        values_[loop.vars[k].get()] = int_imm(0, loop.vars[k]->type);
      } else {
        vars.push_back(loop.vars[k]);
        extents.push_back(loop.extents[k]);
      }
    }
    loop.vars = std::move(vars);
    loop.extents = std::move(extents);
  }

  Stmt while_loop(const While& n, const Stmt& s) {
    const Expr condition = rewrite(n.condition);
    if (constant_int(condition) == 0) return nullptr;
    const Stmt inner = body_under(condition, true, n.body);
    return condition == n.condition && inner == n.body ? s : make_stmt(While{condition, inner}, s->span);
  }

  Stmt branch(const If& n, const Stmt& s) {
    const Expr condition = rewrite(n.condition);
    if (const auto known = constant_int(condition))
      return *known ? rewrite(n.then) : n.otherwise ? rewrite(n.otherwise) : nullptr;
    const Stmt then = body_under(condition, true, n.then);
    Stmt otherwise = n.otherwise ? body_under(condition, false, n.otherwise) : nullptr;
    if (is_empty(otherwise)) otherwise = nullptr;
    if (is_empty(then)) {
      if (!otherwise) return nullptr;
      return make_stmt(If{rewrite(unary(UnaryOp::logical_not, condition, condition->span)), otherwise, nullptr},
                       s->span);
    }
    const bool same = condition == n.condition && then == n.then && otherwise == n.otherwise;
    return same ? s : make_stmt(If{condition, then, otherwise}, s->span);
  }

  // A literal or another variable takes the place of the defined one.
  Stmt definition(const Let& n, const Stmt& s) {
    const Expr value = rewrite(n.value);
    values_.erase(n.var.get());
    const bool simple = std::holds_alternative<IntImm>(value->node) || std::holds_alternative<FloatImm>(value->node) ||
                        std::holds_alternative<VarRef>(value->node);
    if (simple) values_[n.var.get()] = value;
    if (simple || uses_.count(n.var.get()) == 0) return nullptr;
    if (value->type.is_int() || value->type.is_bool()) {
      ranges_[n.var.get()] = bounds(value, ranges_);
      if (!has_loads(value)) definitions_.push_back({n.var, value});
    }
    return value == n.value ? s : make_stmt(Let{n.var, value}, s->span);
  }

  Stmt block(const Block& n, const Stmt& s) {
    Block fresh;
    const size_t known = definitions_.size();
    for (const Stmt& child : n.body) append(fresh, rewrite(child));
    definitions_.resize(known);
    return fresh.body == n.body ? s : make_stmt(std::move(fresh), s->span);
  }

  // Blocks that define nothing are only brackets. One that does stays: it may stand in several places.
  static void append(Block& block, Stmt s) {
    const auto* inner = s ? std::get_if<Block>(&s->node) : nullptr;
    if (inner && !has_let(*inner)) {
      block.body.insert(block.body.end(), inner->body.begin(), inner->body.end());
    } else if (s) {
      block.body.push_back(std::move(s));
    }
  }
};

// Each round may show the next one something: a definition whose last use went, a branch that became empty.
constexpr int kMostRounds = 8;

}  // namespace

Program simplify(const Program& program, const VarRanges& known) {
  Program current = program;
  for (int round = 0; round < kMostRounds; ++round) {
    Program next = Simplifier(current, known).rewrite(current);
    if (same_nodes(current, next)) break;
    current = std::move(next);
  }
  return current;
}

}  // namespace tilepilot::passes
