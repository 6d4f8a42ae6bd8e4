#include "compiler/targets/cpu/loops/load_hoisting.h"

#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"

namespace tilepilot::targets::cpu {
namespace {

class Finder {
 public:
  Finder(c::Context& context, const LaneFacts& facts, const LanePlan& plan)
      : context_(context), facts_(facts), plan_(plan) {}

  void visit(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node))
      for (const ir::Stmt& child : block->body) visit(child);
    const auto* branch = std::get_if<ir::If>(&stmt->node);
    if (branch != nullptr && context_.proven.contains(branch)) visit(branch->then);
    if (const auto* let = std::get_if<ir::Let>(&stmt->node)) visit(let->value);
    // An element that is stored as it was loaded needs no conversion.
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store != nullptr && !std::holds_alternative<ir::Load>(store->value->node)) visit(store->value);
  }

  std::vector<HoistedLoad> found;

 private:
  c::Context& context_;
  const LaneFacts& facts_;
  const LanePlan& plan_;

  // What is evaluated in any case.
  void visit(const ir::Expr& expr) {
    std::visit(ir::overloaded{
                   [](const ir::IntImm&) {},
                   [](const ir::FloatImm&) {},
                   [](const ir::VarRef&) {},
                   [&](const ir::Load& load) { add(expr, load); },
                   [&](const ir::Unary& node) { visit(node.operand); },
                   [&](const ir::Binary& node) {
                     visit(node.left);
                     const bool both = node.op != ir::BinaryOp::logical_and && node.op != ir::BinaryOp::logical_or;
                     if (both) visit(node.right);
                   },
                   [&](const ir::Math& node) { visit(node.argument); },
                   [&](const ir::Select& node) { visit(context_.proven.contains(&node) ? node.then : node.condition); },
                   [&](const ir::Cast& node) { visit(node.value); },
                   [&](const ir::Reinterpret&) {},
               },
               expr->node);
  }

  void add(const ir::Expr& expr, const ir::Load& load) {
    const ir::Buffer& buffer = load.buffer;
    if (buffer->type != ir::kFloat16 || facts_.is_stored(buffer) || !buffer->strides.empty()) return;
    if (buffer->scope != ir::Scope::global && context_.sharing.contains(buffer.get())) return;
    if (context_.lanes.loads.contains(expr.get())) return;
    std::vector<ir::Expr> indices;
    for (const ir::Expr& index : load.indices) indices.push_back(plan_.runs.within(index));
    if (!is_in_bounds(context_, expr, load) || needs_lanes(facts_, plan_, indices)) return;
    const std::vector<ir::Expr> leading(indices.begin(), indices.end() - 1);
    const bool for_all_lanes = !mentions(indices, plan_.lane.var);
    if (!for_all_lanes) {
      const auto last = context_.facts.affine(indices.back());
      if (mentions(leading, plan_.lane.var) || !last || last->coefficient(plan_.lane.var) != 1) return;
    }
    for (HoistedLoad& other : found)
      if (ir::structurally_equal(other.load, expr)) return other.nodes.push_back(expr.get());
    found.push_back({{expr.get()}, expr, for_all_lanes, !plan_.row || !mentions(load.indices, plan_.row->var)});
  }
};

bool are_in_bounds(const c::Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices) {
  for (size_t axis = 0; axis < indices.size(); ++axis)
    if (!context.facts.in_bounds(indices[axis], buffer->shape[axis])) return false;
  return true;
}

}  // namespace

bool is_in_bounds(const c::Context& context, const ir::Expr& expr, const ir::Load& load) {
  return context.proven.contains(expr.get()) || are_in_bounds(context, load.buffer, load.indices);
}

bool is_in_bounds(const c::Context& context, const ir::Stmt& stmt, const ir::Store& store) {
  return context.proven.contains(stmt.get()) || are_in_bounds(context, store.buffer, store.indices);
}

bool needs_lanes(const LaneFacts& facts, const LanePlan& plan, const std::vector<ir::Expr>& indices) {
  bool found = false;
  const auto look = [&](const ir::Expr& part) {
    const auto* ref = std::get_if<ir::VarRef>(&part->node);
    const bool is_thread =
        ref != nullptr && std::any_of(plan.thread.begin(), plan.thread.end(),
                                      [&](const Dimension& dimension) { return dimension.var == ref->var; });
    found = found || std::holds_alternative<ir::Load>(part->node) ||
            (ref != nullptr && !is_thread && facts.is_varying(ref->var));
  };
  for (const ir::Expr& index : indices) ir::walk(index, look);
  return found;
}

std::vector<HoistedLoad> find_hoisted_loads(c::Context& context, const LaneFacts& facts, const LanePlan& plan,
                                            const std::vector<ir::Stmt>& statements) {
  Finder finder(context, facts, plan);
  for (const ir::Stmt& stmt : statements) finder.visit(stmt);
  return std::move(finder.found);
}

}  // namespace tilepilot::targets::cpu
