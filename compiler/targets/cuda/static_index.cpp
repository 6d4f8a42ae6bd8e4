#include "compiler/targets/cuda/static_index.h"

#include <algorithm>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/visit.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;

namespace {

constexpr size_t kMostSteps = 64;  // longer expressions count as unknown

constexpr BinaryOp kKnown[] = {BinaryOp::add,       BinaryOp::sub,     BinaryOp::mul,    BinaryOp::floor_div,
                               BinaryOp::floor_mod, BinaryOp::min,     BinaryOp::max,    BinaryOp::shl,
                               BinaryOp::shr,       BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor};

int64_t apply(BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::floor_div:
      return b == 0 ? 0 : static_cast<int64_t>(ir::floor_div(a, b));
    case BinaryOp::floor_mod:
      return b == 0 ? 0 : static_cast<int64_t>(ir::floor_mod(a, b));
    case BinaryOp::min:
      return std::min(a, b);
    case BinaryOp::max:
      return std::max(a, b);
    case BinaryOp::shl:
      return a << (b & 31);
    case BinaryOp::shr:
      return a >> (b & 63);
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::bit_or:
      return a | b;
    default:
      return a ^ b;
  }
}

}  // namespace

std::optional<StaticIndex> StaticIndex::of(const ir::Expr& expr, const std::vector<ir::Var>& vars) {
  StaticIndex index;
  if (!index.add(expr, vars) || index.steps_.size() > kMostSteps) return std::nullopt;
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
  int64_t stack[kMostSteps];
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
        stack[top - 1] = apply(step.op, stack[top - 1], stack[top]);
        break;
    }
  }
  return stack[0];
}

}  // namespace tilepilot::targets::cuda
