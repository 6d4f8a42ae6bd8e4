#include "compiler/targets/gpu/facts/if_conversion.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

// Whether computing the value where nobody asks for it costs next to nothing and does no harm.
bool is_plain(const Expr& value) {
  bool plain = true;
  ir::walk(value, [&](const Expr& part) {
    const auto* node = ir::as<ir::Binary>(part);
    const bool divides = node && (node->op == BinaryOp::floor_div || node->op == BinaryOp::floor_mod);
    const bool sums = node && (node->op == BinaryOp::add || node->op == BinaryOp::sub || node->op == BinaryOp::mul);
    const bool divides_by_number = divides && ir::constant_int(node->right).value_or(0) > 0;
    const bool is_leaf = ir::as<ir::VarRef>(part) || ir::as<ir::IntImm>(part) || ir::as<ir::FloatImm>(part);
    plain = plain && (is_leaf || ir::as<ir::Cast>(part) || sums || divides_by_number);
  });
  return plain;
}

// What one side does: names, then a store, again and again.
struct Step {
  std::vector<Stmt> lets;
  Stmt store;
};
std::optional<std::vector<Step>> steps_of(const Stmt& side) {
  std::vector<Step> steps(1);
  const auto add = [&](const auto& self, const Stmt& stmt) -> bool {
    if (ir::as<ir::Block>(stmt)) {
      const std::vector<Stmt> parts = ir::statements(stmt);
      return std::all_of(parts.begin(), parts.end(), [&](const Stmt& part) { return self(self, part); });
    }
    if (ir::as<ir::Let>(stmt)) {
      steps.back().lets.push_back(stmt);
      return true;
    }
    if (!ir::as<ir::Store>(stmt)) return false;
    steps.back().store = stmt;
    steps.emplace_back();
    return true;
  };
  if (!add(add, side)) return std::nullopt;
  steps.pop_back();  // names that nothing follows
  return steps;
}

bool is_same_element(const ir::Store& a, const ir::Store& b) {
  if (a.buffer != b.buffer || a.value->type != b.value->type) return false;
  return std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end(),
                    [](const Expr& left, const Expr& right) { return ir::structurally_equal(left, right); });
}

class Converter : public ir::Rewriter {
 public:
  using Rewriter::rewrite;

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    const bool enters = loop && (loop->kind == ir::LoopKind::parallel || loop->kind == ir::LoopKind::vectorized);
    depth_ += enters ? 1 : 0;
    const Stmt inner = rewrite_children(stmt);
    depth_ -= enters ? 1 : 0;
    const auto* choice = depth_ > 0 ? ir::as<ir::If>(inner) : nullptr;
    const Stmt converted = choice && choice->otherwise ? convert(*choice, stmt->span) : nullptr;
    return converted ? converted : inner;
  }

 private:
  int depth_ = 0;  // of loops whose iterations are done side by side

  static Stmt convert(const ir::If& choice, Span span) {
    const auto then = steps_of(choice.then), otherwise = steps_of(choice.otherwise);
    if (!then || !otherwise || then->empty() || then->size() != otherwise->size()) return nullptr;
    for (size_t k = 0; k < then->size(); ++k)
      if (!is_same_element(*ir::as<ir::Store>((*then)[k].store), *ir::as<ir::Store>((*otherwise)[k].store)))
        return nullptr;
    std::vector<Stmt> all;
    Expr condition = choice.condition;
    if (ir::has_loads(condition)) {  // once, before the stores change what it reads
      const ir::Var chosen = ir::make_var("chosen", ir::kBool);
      all.push_back(ir::make_stmt(ir::Let{chosen, condition}, span));
      condition = ir::var_ref(chosen, span);
    }
    for (size_t k = 0; k < then->size(); ++k) {
      const Step &left = (*then)[k], &right = (*otherwise)[k];
      add_lets(left.lets, condition, all);
      add_lets(right.lets, ir::unary(ir::UnaryOp::logical_not, condition, span), all);
      ir::Store store = *ir::as<ir::Store>(left.store);
      store.value = ir::select(condition, store.value, ir::as<ir::Store>(right.store)->value, span);
      all.push_back(ir::make_stmt(std::move(store), left.store->span));
    }
    return block(std::move(all), span);
  }

  static void add_lets(const std::vector<Stmt>& lets, const Expr& condition, std::vector<Stmt>& all) {
    for (const Stmt& stmt : lets) {
      const auto& let = *ir::as<ir::Let>(stmt);
      const Expr nothing = ir::cast(ir::int_imm(0), let.var->type);
      const Expr value = is_plain(let.value) ? let.value : ir::select(condition, let.value, nothing, stmt->span);
      all.push_back(ir::make_stmt(ir::Let{let.var, value}, stmt->span));
    }
  }
};

}  // namespace

ir::Kernel with_if_conversion(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  result.body = Converter().rewrite(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::gpu
