// Every expression of a small random language over two variables is evaluated at all points of their ranges: the
// interval must hold each value, and the affine form must give it.
#include "compiler/ir/bounds.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "compiler/ir/arithmetic.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/visit.h"
#include "evaluate.h"
#include "tests/rounds.h"

namespace tilepilot::ir {
namespace {

using testing::evaluate;
using testing::Values;

class BoundsTest : public ::testing::Test {
 protected:
  std::mt19937 random_{7};
  Var x_ = make_var("x", kInt32), y_ = make_var("y", kInt32);
  DType type_ = kInt32;

  int pick(int count) { return int(random_() % unsigned(count)); }

  Expr integer(int depth) {
    if (depth == 0 || pick(5) == 0) {
      if (pick(3) == 0) return int_imm(wrap(pick(20) - 6, type_), type_);
      return cast(var_ref(pick(2) ? x_ : y_), type_);
    }
    const auto sub = [&] { return integer(depth - 1); };
    switch (pick(12)) {
      case 0:
        return unary(UnaryOp::neg, sub());
      case 1:
        return unary(UnaryOp::bit_not, sub());
      case 2:
        return select(boolean(depth - 1), sub(), sub());
      case 3:
        return binary(pick(2) ? BinaryOp::shl : BinaryOp::shr, sub(), int_imm(pick(5), type_));
      case 4:
        return binary(std::array{BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor}[size_t(pick(3))], sub(),
                      sub());
      case 5:
        return binary(pick(2) ? BinaryOp::floor_div : BinaryOp::floor_mod, sub(), int_imm(1 + pick(9), type_));
      case 6:
        return binary(pick(2) ? BinaryOp::floor_div : BinaryOp::floor_mod, sub(),
                      int_imm(wrap(-1 - pick(9), type_), type_));
      case 7:
        return binary(pick(2) ? BinaryOp::min : BinaryOp::max, sub(), sub());
      case 8:
        return binary(BinaryOp::mul, sub(), sub());
      default:
        return binary(pick(2) ? BinaryOp::add : BinaryOp::sub, sub(), sub());
    }
  }

  Expr boolean(int depth) {
    if (depth > 0 && pick(4) == 0) {
      return binary(pick(2) ? BinaryOp::logical_and : BinaryOp::logical_or, boolean(depth - 1), boolean(depth - 1));
    }
    if (depth > 0 && pick(6) == 0) return unary(UnaryOp::logical_not, boolean(depth - 1));
    return binary(BinaryOp(int(BinaryOp::eq) + pick(6)), integer(depth), integer(depth));
  }

  VarRanges ranges() {
    const int64_t x = pick(20) - 10, y = pick(20) - 10;
    return {{x_.get(), {x, x + pick(6)}}, {y_.get(), {y, y + pick(6)}}};
  }

  // Calls `check` for each point of the ranges.
  template <class Check>
  void at_all_points(const VarRanges& ranges, Check check) {
    for (int64_t x = ranges.at(x_.get()).lo; x <= ranges.at(x_.get()).hi; ++x) {
      for (int64_t y = ranges.at(y_.get()).lo; y <= ranges.at(y_.get()).hi; ++y) {
        check(Values{{x_.get(), x}, {y_.get(), y}});
      }
    }
  }
};

TEST_F(BoundsTest, HoldEveryValue) {
  for (int round = 0; round < rounds(20000); ++round) {
    type_ = std::array{kInt32, kInt8, kInt64, kUInt8}[size_t(pick(4))];
    const Expr e = pick(3) ? integer(4) : boolean(3);
    const VarRanges known = ranges();
    const Bounds found = bounds(e, known);
    at_all_points(known, [&](const Values& values) {
      const int64_t value = evaluate(e, values);
      ASSERT_TRUE(found.lo <= value && value <= found.hi) << to_text(e) << " in " << found.lo << ".." << found.hi;
    });
    if (HasFatalFailure()) return;
  }
}

TEST_F(BoundsTest, AffineFormGivesTheValueUnlessItWraps) {
  int found = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Expr e = integer(3);
    const VarRanges known = ranges();
    const auto sum = affine(e);
    if (!sum || may_wrap(e, known)) continue;
    ++found;
    at_all_points(known, [&](const Values& values) {
      int64_t value = sum->constant;
      for (const auto& term : sum->terms) value += term.coefficient * values.at(term.var.get());
      ASSERT_EQ(value, evaluate(e, values)) << to_text(e);
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(found, rounds(3000));
}

TEST_F(BoundsTest, AssumedRangesHoldEveryPointThatMeetsTheCondition) {
  int narrowed = 0;
  for (int round = 0; round < rounds(20000); ++round) {
    const Expr condition = boolean(1 + pick(2));
    const VarRanges known = ranges();
    const bool holds = pick(2) != 0;
    const VarRanges inside = assume(condition, holds, known);
    narrowed += inside != known;
    at_all_points(known, [&](const Values& values) {
      if ((evaluate(condition, values) != 0) != holds) return;
      for (const auto& [var, range] : inside) {
        ASSERT_TRUE(range.lo <= values.at(var) && values.at(var) <= range.hi) << to_text(condition) << " is " << holds;
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(narrowed, rounds(400));
}

TEST_F(BoundsTest, IndexArithmetic) {
  const VarRanges known{{x_.get(), {0, 7}}, {y_.get(), {0, 31}}};
  const Expr index = binary(BinaryOp::add, binary(BinaryOp::mul, var_ref(x_), int_imm(32)), var_ref(y_));
  EXPECT_EQ(bounds(index, known), (Bounds{0, 255}));
  EXPECT_EQ(bounds(binary(BinaryOp::lt, index, int_imm(256)), known), (Bounds{1, 1}));
  EXPECT_EQ(bounds(binary(BinaryOp::lt, index, int_imm(255)), known), (Bounds{0, 1}));
  const Expr next = binary(BinaryOp::add, index, int_imm(1));
  EXPECT_EQ(bounds(binary(BinaryOp::lt, index, next), known), (Bounds{1, 1}));
  const auto sum = affine(index);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->coefficient(x_), 32);
  EXPECT_EQ(sum->coefficient(y_), 1);
  EXPECT_EQ(sum->constant, 0);
}

TEST_F(BoundsTest, UnknownVariablesHaveTheRangeOfTheirType) {
  EXPECT_EQ(bounds(var_ref(x_), {}), (Bounds{-(int64_t{1} << 31), (int64_t{1} << 31) - 1}));
  EXPECT_TRUE(may_wrap(binary(BinaryOp::add, var_ref(x_), int_imm(1)), {}));
  const Expr wrapped = binary(BinaryOp::lt, var_ref(x_), binary(BinaryOp::add, var_ref(x_), int_imm(1)));
  EXPECT_FALSE(bounds(wrapped, {}).is_constant());
}

TEST_F(BoundsTest, LargeUnsignedValuesAreNotNegative) {
  const Var u = make_var("u", kUInt64);
  const Expr half = binary(BinaryOp::floor_div, var_ref(u), int_imm(2, kUInt64));
  EXPECT_EQ(bounds(half, {}), type_bounds(kUInt64));
  const Expr largest = int_imm(-1, kUInt64);
  EXPECT_FALSE(bounds(binary(BinaryOp::lt, largest, int_imm(0, kUInt64)), {}).is_constant());
  const VarRanges inside = assume(binary(BinaryOp::gt, var_ref(u), int_imm(5, kUInt64)), true, {});
  EXPECT_TRUE(inside.empty());
}

}  // namespace
}  // namespace tilepilot::ir
