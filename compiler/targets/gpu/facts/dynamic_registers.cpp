#include "compiler/targets/gpu/facts/dynamic_registers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

// Variables of the loop that stand beside something that changes from run to run in an index of the fragment.
struct Shift {
  Expr distance;
  int64_t extent = 0;  // of the fragment's axis
};
using Shifts = std::unordered_map<const ir::VarData*, Shift>;

// The only statement within conditions that have no other branch.
const ir::Store* only_store(Stmt stmt) {
  while (true) {
    if (const auto* list = ir::as<ir::Block>(stmt)) {
      if (list->body.size() != 1) return nullptr;
      stmt = list->body[0];
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      if (choice->otherwise) return nullptr;
      stmt = choice->then;
    } else {
      return ir::as<ir::Store>(stmt);
    }
  }
}

// The variable of the loop that an index is, or is beside `distance`.
std::optional<ir::Var> variable_of(const ir::For& loop, const Expr& index, Expr& distance) {
  const auto own = [&](const Expr& expr) -> ir::Var {
    const auto* ref = ir::as<ir::VarRef>(expr);
    const auto found = ref ? std::find(loop.vars.begin(), loop.vars.end(), ref->var) : loop.vars.end();
    return found == loop.vars.end() ? nullptr : *found;
  };
  if (const ir::Var var = own(index)) return var;
  const auto* sum = ir::as<ir::Binary>(index);
  if (sum == nullptr || sum->op != BinaryOp::add) return std::nullopt;
  const ir::Var left = own(sum->left), right = own(sum->right);
  if ((left != nullptr) == (right != nullptr)) return std::nullopt;
  distance = left ? sum->right : sum->left;
  const bool varies =
      std::any_of(loop.vars.begin(), loop.vars.end(), [&](const ir::Var& var) { return ir::mentions(distance, var); });
  if (varies || ir::has_loads(distance) || ir::constant_int(distance)) return std::nullopt;
  return left ? left : right;
}

std::optional<Shifts> shifts_of(const ir::For& loop, const ir::Load& load) {
  Shifts shifts;
  std::vector<ir::Var> seen;
  for (size_t axis = 0; axis < load.indices.size(); ++axis) {
    Expr distance;
    const auto var = variable_of(loop, load.indices[axis], distance);
    const auto extent = ir::constant_int(load.buffer->shape[axis]);
    if (!var || !extent || std::find(seen.begin(), seen.end(), *var) != seen.end()) return std::nullopt;
    seen.push_back(*var);
    if (distance) shifts.emplace(var->get(), Shift{distance, *extent});
  }
  return shifts.empty() || seen.size() != loop.vars.size() ? std::nullopt : std::optional(std::move(shifts));
}

// The one load of a fragment by shifted variables; null if there is none, or another fragment needs them, too.
const ir::Load* shifted_load(const ir::For& loop, const ir::Store& store, Shifts& shifts) {
  std::vector<const ir::Load*> loads;
  ir::walk(
      loop.body, [](const Stmt&) {},
      [&](const Expr& part) {
        const auto* load = ir::as<ir::Load>(part);
        if (load && load->buffer->scope == ir::Scope::fragment) loads.push_back(load);
      });
  const ir::Load* shifted = nullptr;
  for (const ir::Load* load : loads)
    if (auto found = shifts_of(loop, *load)) {
      if (shifted != nullptr) return nullptr;
      shifted = load;
      shifts = std::move(*found);
    }
  // Whatever is stored needs it, so that nothing is lost where the fragment has no such element.
  bool in_value = false, chooses = false;
  ir::walk(store.value, [&](const Expr& part) {
    in_value |= ir::as<ir::Load>(part) == shifted;
    chooses |= ir::as<ir::Select>(part) != nullptr;
  });
  if (shifted == nullptr || !in_value || chooses) return nullptr;
  ir::Variables vars;
  for (const auto& [var, shift] : shifts) vars.insert(var);
  for (const ir::Load* load : loads)
    for (const Expr& index : load->indices)
      if (load != shifted && ir::mentions(index, vars)) return nullptr;
  return shifted;
}

// The fragment by the variables of the loop over all of its elements.
class AtElements : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  AtElements(const ir::For& loop, const ir::For& over) : loop_(loop), over_(over) {}

  Expr rewrite(const Expr& expr) override {
    const auto* load = ir::as<ir::Load>(expr);
    if (load == nullptr || load->buffer->scope != ir::Scope::fragment || !shifts_of(loop_, *load))
      return rewrite_children(expr);
    std::vector<Expr> at;
    for (const Expr& index : load->indices) {
      Expr distance;
      const auto found = std::find(loop_.vars.begin(), loop_.vars.end(), *variable_of(loop_, index, distance));
      at.push_back(ir::var_ref(over_.vars[static_cast<size_t>(found - loop_.vars.begin())], index->span));
    }
    return ir::load(load->buffer, std::move(at), expr->span);
  }

 private:
  const ir::For& loop_;
  const ir::For& over_;
};

}  // namespace

Stmt over_held_elements(const Stmt& stmt) {
  const auto& loop = *ir::as<ir::For>(stmt);
  const ir::Store* store = only_store(loop.body);
  if (store == nullptr) return stmt;
  if (store->buffer->scope != ir::Scope::shared && store->buffer->scope != ir::Scope::global) return stmt;
  Shifts shifts;
  if (shifted_load(loop, *store, shifts) == nullptr) return stmt;
  ir::For over = loop;
  Expr condition;
  std::unordered_map<const ir::VarData*, Expr> values;
  for (size_t axis = 0; axis < loop.vars.size(); ++axis) {
    const auto shift = shifts.find(loop.vars[axis].get());
    if (shift == shifts.end()) continue;
    const ir::DType type = loop.vars[axis]->type;
    over.vars[axis] = ir::make_var(loop.vars[axis]->name, type);
    over.extents[axis] = ir::int_imm(shift->second.extent, type);
    const Expr distance = ir::cast(shift->second.distance, type);
    const Expr before = ir::binary(BinaryOp::sub, ir::var_ref(over.vars[axis]), distance, stmt->span);
    values.emplace(loop.vars[axis].get(), before);
    condition = both(condition, ir::binary(BinaryOp::ge, before, ir::int_imm(0, type), stmt->span));
    condition = both(condition, ir::binary(BinaryOp::lt, before, ir::cast(loop.extents[axis], type), stmt->span));
  }
  // The fragment's own indices first, so that they are variables again.
  const Stmt body = AtElements(loop, over).rewrite(loop.body);
  const Stmt moved = ir::substitute(body, [&](const ir::Var& var) -> Expr {
    const auto found = values.find(var.get());
    return found == values.end() ? nullptr : found->second;
  });
  over.body = ir::make_stmt(ir::If{condition, moved, nullptr}, stmt->span);
  return ir::make_stmt(std::move(over), stmt->span);
}

}  // namespace tilepilot::targets::gpu
