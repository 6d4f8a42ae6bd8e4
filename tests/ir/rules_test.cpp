// Each rewrite rule by itself, on random instances: integer variables of every width with random ranges, random
// literals. Wherever its condition is known to hold, both sides have the same value at every point.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/rewrite_rules.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/algebra/sum.h"
#include "evaluate.h"
#include "tests/rounds.h"

namespace tilepilot::passes {
namespace {

using namespace ir;
using ir::testing::evaluate;
using ir::testing::Values;

class RulesTest : public ::testing::Test {
 protected:
  std::mt19937 random_{11};
  Var a_, b_;
  VarRanges ranges_;
  DType type_;

  int64_t pick(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }

  int64_t literal() {
    const Bounds all = type_bounds(type_);
    const int64_t value = pick(0, 2) ? pick(-9, 20) : pick(0, 1) ? all.lo + pick(0, 3) : all.hi - pick(0, 3);
    return wrap(value, type_);
  }

  void new_variables() {
    type_ = std::array{kInt8, kUInt8, kInt32, kInt64, kUInt32}[size_t(pick(0, 4))];
    a_ = make_var("a", type_);
    b_ = make_var("b", type_);
    ranges_.clear();
    for (const Var& v : {a_, b_}) {
      const Bounds all = type_bounds(type_);
      const int64_t lo = pick(0, 3) ? std::max(all.lo, pick(-6, 6)) : all.lo;
      ranges_[v.get()] = {lo, std::min(lo + pick(0, 12), all.hi)};
    }
  }

  Expr integer() {
    const Expr v = var_ref(pick(0, 1) ? a_ : b_);
    return pick(0, 3) ? v : binary(pick(0, 1) ? BinaryOp::add : BinaryOp::mul, v, int_imm(literal(), type_));
  }

  Expr boolean() { return pick(0, 3) ? binary(BinaryOp::lt, integer(), integer()) : bool_imm(pick(0, 1)); }

  // Random values for the variables of a rule.
  Bindings random_bindings() {
    Bindings result;
    for (const char* name : {"x", "y", "z"}) result[name] = integer();
    for (const char* name : {"c", "c1", "c2"}) result[name] = int_imm(literal(), type_);
    if (pick(0, 3) == 0) result["c2"] = result["c1"];
    if (pick(0, 3) == 0) {
      const int64_t factor = *constant_int(result["c1"]);
      result["c2"] = int_imm(wrap(Wide{factor} * pick(1, 4), type_), type_);
      if (pick(0, 1)) std::swap(result["c1"], result["c2"]);
    }
    for (const char* name : {"p", "q"}) result[name] = boolean();
    for (const char* name : {"u", "v"}) result[name] = integer();
    return result;
  }

  template <class Check>
  void at_all_points(Check check) {
    const Bounds a = ranges_.at(a_.get()), b = ranges_.at(b_.get());
    for (int64_t x = a.lo; x <= a.hi; ++x) {
      for (int64_t y = b.lo; y <= b.hi; ++y) check(Values{{a_.get(), x}, {b_.get(), y}});
    }
  }

  void expect_same(const Expr& before, const Expr& after, std::string_view what) {
    ASSERT_EQ(before->type, after->type) << what;
    at_all_points([&](const Values& values) {
      ASSERT_EQ(evaluate(before, values), evaluate(after, values))
          << what << ": " << to_text(before) << " became " << to_text(after) << " at " << values.at(a_.get()) << ", "
          << values.at(b_.get()) << " in " << to_string(type_);
    });
  }
};

Expr keep(Expr e) { return e; }

bool divides_by_zero(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& part) {
    const auto* n = std::get_if<Binary>(&part->node);
    const bool divides = n && (n->op == BinaryOp::floor_div || n->op == BinaryOp::floor_mod);
    found |= divides && constant_int(n->right) == 0;
  });
  return found;
}

bool about_floats(const CompiledRule& rule) {
  bool found = false;
  walk(rule.from, [&](const Expr& part) { found |= std::holds_alternative<FloatImm>(part->node); });
  return found;
}

// Whether the rule may be used on this instance.
bool applies(const CompiledRule& rule, const Expr& from, const Bindings& bindings, const VarRanges& ranges) {
  if (divides_by_zero(from)) return false;
  if (bounds(instantiate(rule.when, bindings, {}, keep), ranges) != Bounds{1, 1}) return false;
  if (rule.rule->arithmetic == Arithmetic::wrapping) return true;
  const auto& n = std::get<Binary>(from->node);
  return !may_wrap(n.left, ranges) && !may_wrap(n.right, ranges);
}

TEST_F(RulesTest, EachRuleKeepsTheValue) {
  for (const CompiledRule& rule : compiled_rules()) {
    if (about_floats(rule)) continue;
    int applied = 0;
    for (int round = 0; round < 400000 && applied < rounds(200); ++round) {
      new_variables();
      const Bindings bindings = random_bindings();
      const Expr from = instantiate(rule.from, bindings, {}, keep);
      if (!match(rule.from, from) || !applies(rule, from, bindings, ranges_)) continue;
      ++applied;
      expect_same(from, instantiate(rule.to, bindings, {}, keep), rule.rule->from);
      if (HasFatalFailure()) return;
    }
    EXPECT_GE(applied, rounds(100)) << rule.rule->from << " is hardly ever tried";
  }
}

TEST_F(RulesTest, FloatRules) {
  const Expr u = var_ref(make_var("u", kFloat16));
  const auto one = float_imm(1.0, kFloat16), zero = float_imm(0.0, kFloat16), minus_zero = float_imm(-0.0, kFloat16);
  const auto text = [](BinaryOp op, Expr a, Expr b) { return to_text(simplify(binary(op, a, b), {})); };
  EXPECT_EQ(text(BinaryOp::mul, u, one), "u");
  EXPECT_EQ(text(BinaryOp::mul, one, u), "u");
  EXPECT_EQ(text(BinaryOp::div, u, one), "u");
  EXPECT_EQ(text(BinaryOp::sub, u, zero), "u");
  EXPECT_EQ(text(BinaryOp::add, u, minus_zero), "u");
  EXPECT_EQ(text(BinaryOp::add, u, zero), "u + 0.0");  // -0.0 + 0.0 is 0.0
  EXPECT_EQ(text(BinaryOp::mul, u, zero), "u * 0.0");  // NaN, infinity, -0.0
  EXPECT_EQ(text(BinaryOp::sub, u, u), "u - u");       // NaN, infinity
  EXPECT_EQ(text(BinaryOp::eq, u, u), "u == u");       // NaN
}

TEST_F(RulesTest, SumsKeepTheValue) {
  int collected = 0, divided = 0;
  for (int round = 0; round < rounds(60000); ++round) {
    new_variables();
    Expr sum = integer();
    for (int64_t k = pick(1, 4); k > 0; --k) {
      const auto op = pick(0, 1) ? BinaryOp::add : BinaryOp::sub;
      const Expr next = pick(0, 2) ? integer() : int_imm(literal(), type_);
      sum = pick(0, 4) ? binary(op, sum, next) : binary(BinaryOp::mul, sum, int_imm(pick(1, 8), type_));
    }
    if (const Expr result = collect_terms(sum)) expect_same(sum, result, "collect_terms"), ++collected;
    const auto op = pick(0, 1) ? BinaryOp::floor_div : BinaryOp::floor_mod;
    const Expr quotient = binary(op, sum, int_imm(pick(2, 16), type_));
    if (const Expr result = divide_sum(quotient, ranges_)) expect_same(quotient, result, "divide_sum"), ++divided;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(collected, rounds(5000));
  EXPECT_GT(divided, rounds(2000));
}

// All together, on deeper expressions.
TEST_F(RulesTest, SimplifyKeepsTheValue) {
  const std::function<Expr(int)> grow = [&](int depth) -> Expr {
    if (depth == 0) return pick(0, 3) ? integer() : int_imm(literal(), type_);
    const auto sub = [&] { return grow(int(pick(0, depth - 1))); };
    const auto positive = [&] { return int_imm(pick(1, 12), type_); };
    switch (pick(0, 9)) {
      case 0:
        return binary(BinaryOp::floor_div, sub(), positive());
      case 1:
        return binary(BinaryOp::floor_mod, sub(), positive());
      case 2:
        return binary(BinaryOp::mul, sub(), positive());
      case 3:
        return unary(UnaryOp::neg, sub());
      case 4:
        return binary(pick(0, 1) ? BinaryOp::min : BinaryOp::max, sub(), sub());
      case 5: {
        const auto compare = BinaryOp(pick(int(BinaryOp::eq), int(BinaryOp::ge)));
        const Expr one = binary(compare, sub(), sub()), other = binary(compare, sub(), sub());
        const Expr both = binary(pick(0, 1) ? BinaryOp::logical_and : BinaryOp::logical_or, one, other);
        const Expr condition = pick(0, 2) ? both : unary(UnaryOp::logical_not, both);
        return select(condition, sub(), sub());
      }
      default:
        return binary(pick(0, 1) ? BinaryOp::add : BinaryOp::sub, sub(), sub());
    }
  };
  for (int round = 0; round < rounds(20000); ++round) {
    new_variables();
    const Expr e = grow(4), result = simplify(e, ranges_);
    expect_same(e, result, "simplify");
    if (HasFatalFailure()) return;
  }
}

struct Example {
  const char* before;
  const char* after;
};

// i < 4, j < 8, n unknown: indices as tiles have them.
TEST_F(RulesTest, IndexArithmetic) {
  const Var i = make_var("i", kInt32), j = make_var("j", kInt32), n = make_var("n", kInt32);
  const VarRanges ranges{{i.get(), {0, 3}}, {j.get(), {0, 7}}};
  const Expr I = var_ref(i), J = var_ref(j), N = var_ref(n);
  const auto k = [](int64_t value) { return int_imm(value); };
  const auto op = [](BinaryOp o, Expr a, Expr b) { return binary(o, std::move(a), std::move(b)); };
  const auto text = [&](const Expr& e) { return to_text(simplify(e, ranges)); };
  const Expr flat = op(BinaryOp::add, op(BinaryOp::mul, I, k(8)), J);
  EXPECT_EQ(text(op(BinaryOp::floor_div, flat, k(8))), "i");
  EXPECT_EQ(text(op(BinaryOp::floor_mod, flat, k(8))), "j");
  EXPECT_EQ(text(op(BinaryOp::floor_div, flat, k(16))), "i // 2");
  EXPECT_EQ(text(op(BinaryOp::floor_div, flat, k(32))), "0");
  EXPECT_EQ(text(op(BinaryOp::floor_div, flat, k(4))), "i * 2 + j // 4");
  EXPECT_EQ(text(op(BinaryOp::floor_mod, flat, k(4))), "j % 4");
  EXPECT_EQ(text(op(BinaryOp::lt, flat, k(32))), "true");
  EXPECT_EQ(text(op(BinaryOp::lt, flat, k(31))), "i * 8 + j < 31");
  EXPECT_EQ(text(op(BinaryOp::ge, flat, k(0))), "true");
  EXPECT_EQ(text(op(BinaryOp::sub, flat, op(BinaryOp::mul, I, k(8)))), "j");
  EXPECT_EQ(text(op(BinaryOp::add, op(BinaryOp::add, I, k(3)), k(-3))), "i");
  EXPECT_EQ(text(op(BinaryOp::min, I, k(100))), "i");
  EXPECT_EQ(text(op(BinaryOp::min, I, N)), "min(i, n)");
  // n may be so large that n * 8 wraps.
  EXPECT_EQ(text(op(BinaryOp::floor_div, op(BinaryOp::mul, N, k(8)), k(8))), "n * 8 // 8");
  // The condition narrows what its sides see.
  const Expr guarded = select(op(BinaryOp::lt, I, k(2)), op(BinaryOp::floor_div, I, k(2)), k(7));
  EXPECT_EQ(text(guarded), "select(i < 2, 0, 7)");
}

}  // namespace
}  // namespace tilepilot::passes
