#include "compiler/passes/algebra/static_index.h"

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/fold.h"

namespace tilepilot::passes {

using ir::BinaryOp;

namespace {

constexpr size_t kMostStepsOfIndex = 64;  // longer expressions count as unknown

constexpr BinaryOp kKnown[] = {BinaryOp::add,       BinaryOp::sub,     BinaryOp::mul,    BinaryOp::floor_div,
                               BinaryOp::floor_mod, BinaryOp::min,     BinaryOp::max,    BinaryOp::shl,
                               BinaryOp::shr,       BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};

}  // namespace

const ir::Expr& without_casts(const ir::Expr& expr) {
  const auto* cast = ir::as<ir::Cast>(expr);
  return cast != nullptr && cast->value->type.is_int() ? without_casts(cast->value) : expr;
}

std::optional<StaticIndex> StaticIndex::of(const ir::Expr& expr, const std::vector<ir::Var>& vars) {
  StaticIndex index;
  if (!index.add(expr, vars) || index.steps_.size() > kMostStepsOfIndex) return std::nullopt;
  return index;
}

bool StaticIndex::add(const ir::Expr& expr, const std::vector<ir::Var>& vars) {
  if (const auto value = ir::constant_int(expr)) {
    steps_.push_back({Step::Kind::constant, BinaryOp::add, *value});
    return true;
  }
  if (const auto* ref = ir::as<ir::VarRef>(expr)) {
    const auto found = std::find(vars.begin(), vars.end(), ref->var);
    if (found == vars.end()) return false;
    steps_.push_back({Step::Kind::variable, BinaryOp::add, found - vars.begin()});
    return true;
  }
  if (const auto* cast = ir::as<ir::Cast>(expr)) return cast->value->type.is_int() && add(cast->value, vars);
  const auto* node = ir::as<ir::Binary>(expr);
  if (node == nullptr || std::find(std::begin(kKnown), std::end(kKnown), node->op) == std::end(kKnown)) return false;
  if (!add(node->left, vars) || !add(node->right, vars)) return false;
  steps_.push_back({Step::Kind::operation, node->op, 0});
  return true;
}

int64_t StaticIndex::operator()(const std::vector<int64_t>& values) const {
  int64_t stack[kMostStepsOfIndex];
  size_t top = 0;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::constant:
        stack[top++] = step.value;
        break;
      case Step::Kind::variable:
        stack[top++] = values[static_cast<size_t>(step.value)];
        break;
      case Step::Kind::operation:
        --top;
        stack[top - 1] = fold(step.op, stack[top - 1], stack[top], ir::kInt64).value_or(0);
        break;
    }
  }
  return stack[0];
}

}  // namespace tilepilot::passes
