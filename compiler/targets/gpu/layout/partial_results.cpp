#include "compiler/targets/gpu/layout/partial_results.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/iterations/iteration_conflicts.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/reduction_modes.h"

namespace tilepilot::targets::gpu {
namespace {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;

// More parts than this, of all threads, would not stay in registers.
constexpr int64_t kMostParts = 32768;

// Where an iteration keeps its part: at the element's place, then by number among those that share the element.
struct Parts {
  Buffer buffer;  // the shape of the fragment, then the number of parts
  std::vector<Expr> place;
  ir::ReduceOp op;
  bool is_complete;  // each part is written
};

class Planner {
 public:
  explicit Planner(const ir::For& loop) : loop_(loop) {
    ir::each_effect(loop.body, [&](const Buffer& buffer, bool) { ++accesses_[ir::memory_of(buffer)]; });
  }

  std::optional<Parts> plan(const ir::Atomic& atomic, bool conditional) const {
    const Buffer& fragment = atomic.element.buffer;
    const auto op = reduction_of(atomic.op);
    if (!op || atomic.previous || fragment->scope != ir::Scope::fragment || fragment->base) return std::nullopt;
    if (accesses_.at(ir::memory_of(fragment)) != accesses_of(atomic)) return std::nullopt;
    const passes::IterationSpace space(loop_);
    Parts parts{nullptr, {}, *op, !conditional};
    std::vector<Step> left;  // of the loop's variables, what does not choose the element
    for (size_t axis = 0; axis < loop_.vars.size(); ++axis) {
      const auto extent = ir::constant_int(loop_.extents[axis]);
      if (!extent) return std::nullopt;
      left.push_back({ir::var_ref(loop_.vars[axis]), *extent});
    }
    for (size_t axis = 0; axis < fragment->rank(); ++axis) {
      const Expr index = space.expanded(atomic.element.start[axis]);
      const int64_t size = *ir::constant_int(fragment->shape[axis]);
      if (const auto number = ir::constant_int(index)) {
        parts.is_complete &= size == 1;
      } else if (const auto covered = take(index, left)) {
        parts.is_complete &= *covered == size;
      } else {
        return std::nullopt;
      }
      parts.place.push_back(index);
    }
    Expr number = ir::int_imm(0);
    int64_t count = 1;
    for (const Step& step : left) {
      number = joined(number, step);
      count *= step.extent;
    }
    parts.place.push_back(number);
    ir::BufferData data{
        fragment->name + "_parts", fragment->type, ir::Scope::fragment, fragment->shape, {}, fragment->span};
    data.shape.push_back(ir::int_imm(count));
    int64_t all = 1;
    for (const Expr& extent : data.shape) all *= *ir::constant_int(extent);
    if (all > kMostParts) return std::nullopt;
    parts.buffer = std::make_shared<ir::BufferData>(std::move(data));
    return parts;
  }

 private:
  struct Step {
    Expr value;
    int64_t extent;
  };
  const ir::For& loop_;
  std::unordered_map<const ir::BufferData*, int> accesses_;

  static int accesses_of(const ir::Atomic& atomic) {
    int accesses = 0;
    ir::each_effect(ir::make_stmt(ir::Atomic(atomic), {}), [&](const Buffer& buffer, bool) {
      accesses += ir::memory_of(buffer) == ir::memory_of(atomic.element.buffer);
    });
    return accesses;
  }

  static Expr joined(const Expr& number, const Step& step) {
    if (ir::constant_int(number) == 0) return step.value;
    return ir::binary(BinaryOp::add, ir::binary(BinaryOp::mul, number, ir::int_imm(step.extent, number->type)),
                      step.value);
  }

  // Takes a variable, or its quotient, from what is left; how many values it has.
  static std::optional<int64_t> take(const Expr& index, std::vector<Step>& left) {
    const auto* quotient = ir::as<ir::Binary>(index);
    const bool divides = quotient && quotient->op == BinaryOp::floor_div;
    const Expr& of = divides ? quotient->left : index;
    const auto* ref = ir::as<ir::VarRef>(of);
    const auto divisor = divides ? ir::constant_int(quotient->right) : std::optional<int64_t>(1);
    if (!ref || !divisor || *divisor < 1) return std::nullopt;
    const auto step = std::find_if(left.begin(), left.end(), [&](const Step& each) {
      const auto* var = ir::as<ir::VarRef>(each.value);
      return var && var->var == ref->var;
    });
    if (step == left.end() || step->extent % *divisor != 0) return std::nullopt;
    const int64_t values = step->extent / *divisor;
    if (*divisor == 1)
      left.erase(step);
    else
      *step = {ir::binary(BinaryOp::floor_mod, of, ir::int_imm(*divisor, of->type)), *divisor};
    return values;
  }
};

class Replacer : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit Replacer(const Planner& planner) : planner_(planner) {}

  Stmt rewrite(const Stmt& stmt) override {
    if (ir::as<ir::If>(stmt)) {
      const bool was = std::exchange(conditional_, true);
      const Stmt result = rewrite_children(stmt);
      conditional_ = was;
      return result;
    }
    if (ir::as<ir::For>(stmt) || ir::as<ir::While>(stmt)) return stmt;  // one part an iteration
    const auto* atomic = ir::as<ir::Atomic>(stmt);
    const auto parts = atomic ? planner_.plan(*atomic, conditional_) : std::nullopt;
    if (!parts) return rewrite_children(stmt);
    made.emplace_back(atomic->element.buffer, *parts);
    return ir::make_stmt(ir::Store{parts->buffer, parts->place, atomic->value}, stmt->span);
  }

  std::vector<std::pair<Buffer, Parts>> made;

 private:
  const Planner& planner_;
  bool conditional_ = false;
};

}  // namespace

std::optional<ir::ReduceOp> reduction_of(ir::AtomicOp op) {
  if (op == ir::AtomicOp::add) return ir::ReduceOp::sum;
  if (op == ir::AtomicOp::max) return ir::ReduceOp::max;
  if (op == ir::AtomicOp::min) return ir::ReduceOp::min;
  return std::nullopt;
}

Stmt with_partial_results(const Stmt& stmt, std::vector<Buffer>& allocations) {
  ir::For loop = *ir::as<ir::For>(stmt);
  const Planner planner(loop);
  Replacer replacer(planner);
  const Stmt body = replacer.rewrite(loop.body);
  if (replacer.made.empty()) return nullptr;
  loop.body = body;
  std::vector<Stmt> all, after;
  for (const auto& [fragment, parts] : replacer.made) {
    allocations.push_back(parts.buffer);
    const ir::Region held = whole(parts.buffer, stmt->span);
    if (!parts.is_complete)
      all.push_back(ir::make_stmt(ir::Fill{held, identity_of(parts.op, fragment->type)}, stmt->span));
    after.push_back(ir::make_stmt(
        ir::Reduce{parts.op, held, whole(fragment, stmt->span), static_cast<int>(fragment->rank()), false},
        stmt->span));
  }
  all.push_back(ir::make_stmt(std::move(loop), stmt->span));
  all.insert(all.end(), after.begin(), after.end());
  return block(std::move(all), stmt->span);
}

}  // namespace tilepilot::targets::gpu
