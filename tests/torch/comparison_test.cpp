// The rule that decides, on tensors: what passes, what does not.
#include "eval/worker/truth/compare/comparison.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "eval/worker/truth/compare/error_scan.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;

struct Task {
  Expected expected;
  Allowance allowance;
};

// A float32 task whose eager run errs by `eager_error` at most.
Task task(const at::Tensor& truth, double eager_error = 1e-7) {
  at::manual_seed(1);
  at::Tensor eager = truth.mul(at::rand_like(truth).sub(0.5).mul(2 * eager_error).add(1)).to(at::kFloat);
  Task result{{eager, truth}, {}};
  ToleranceBasis basis{
      machine_epsilon("float32"), {64, 1}, truth.numel(), scaled_errors(eager, result.expected).at(0), {}};
  result.allowance.scaled = {allowed_error(basis)};
  return result;
}

Comparison check(const at::Tensor& actual, const Task& task) {
  auto strides = actual.strides().vec();
  return compare({actual, strides}, task.expected, task.allowance);
}

at::Tensor random_truth() {
  at::manual_seed(7);
  return at::randn({40, 30}, at::kDouble);
}

TEST(Compare, AcceptsAnotherOrderOfRoundings) {
  auto truth = random_truth();
  EXPECT_EQ(check(truth.to(at::kFloat), task(truth)).outcome, Outcome::verified);
  EXPECT_EQ(check(truth.mul(1 + 2e-7).to(at::kFloat), task(truth)).outcome, Outcome::verified);
}

TEST(Compare, RejectsTrivialAnswersAtAnyScale) {
  for (double scale : {1e-12, 1e-3, 1.0, 1e9}) {
    auto truth = random_truth().mul(scale);
    auto shown = task(truth);
    EXPECT_EQ(check(at::zeros({40, 30}), shown).outcome, Outcome::wrong_values) << scale;
    EXPECT_EQ(check(at::full({40, 30}, truth.mean().item()), shown).outcome, Outcome::wrong_values) << scale;
    EXPECT_EQ(check(truth.flip(0).to(at::kFloat), shown).outcome, Outcome::wrong_values) << scale;
  }
}

TEST(Compare, RejectsLowPrecisionInside) {
  auto truth = random_truth();
  for (auto type : {at::kHalf, at::kBFloat16}) {
    EXPECT_EQ(check(truth.to(type).to(at::kFloat), task(truth)).outcome, Outcome::wrong_values);
  }
}

// One bad element in many does not hide behind the mean, nor many slightly bad ones behind the maximum.
TEST(Compare, LooksAtTheWorstAndAtTheMean) {
  auto truth = random_truth();
  auto one = truth.to(at::kFloat).clone();
  one[3][4] += 1e-3;
  auto comparison = check(one, task(truth));
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_EQ(comparison.error.where, "[3, 4]");
  auto rough = task(truth);
  rough.allowance.scaled = {{1e-3, 1e-6, 1}};
  EXPECT_EQ(check(truth.mul(1 + 1e-4).to(at::kFloat), rough).outcome, Outcome::wrong_values);
}

TEST(Compare, NotFiniteWhereTheModelIs) {
  auto truth = random_truth();
  auto broken = truth.to(at::kFloat).clone();
  broken[1][2] = std::nan("");
  auto comparison = check(broken, task(truth));
  EXPECT_EQ(comparison.outcome, Outcome::not_finite);
  EXPECT_EQ(comparison.error.where, "[1, 2]");
  broken[1][2] = INFINITY;
  EXPECT_EQ(check(broken, task(truth)).outcome, Outcome::not_finite);
}

TEST(Compare, InfinitiesOfTheModelMustBeMatched) {
  auto truth = random_truth();
  truth[0][0] = -INFINITY;
  truth[0][1] = std::nan("");
  auto shown = task(truth);
  EXPECT_EQ(check(shown.expected.eager.clone(), shown).outcome, Outcome::verified);
  auto other = shown.expected.eager.clone();
  other[0][0] = INFINITY;
  EXPECT_EQ(check(other, shown).outcome, Outcome::wrong_values);
  other[0][0] = 3;
  EXPECT_EQ(check(other, shown).outcome, Outcome::wrong_values);
}

TEST(Compare, PointsAtTheSpecialValueThatIsWrong) {
  auto truth = random_truth();
  truth[2][5] = -INFINITY;
  auto shown = task(truth);
  auto masked = shown.expected.eager.clone();
  masked[2][5] = -1e9;
  auto comparison = check(masked, shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_EQ(comparison.error.where, "[2, 5]");
  EXPECT_THAT(comparison.detail, HasSubstr("worst at [2, 5]: -1e+09 instead of -inf"));
}

// In a short type eager may overflow where the truth does not: then eager's infinity is what is asked for.
TEST(Compare, NamesTheInfinityThatTheTruthLacks) {
  auto truth = random_truth();
  auto shown = task(truth);
  shown.expected.eager[1][1] = INFINITY;
  auto finite = truth.to(at::kFloat);
  auto comparison = check(finite, shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_EQ(comparison.error.where, "[1, 1]");
  EXPECT_THAT(comparison.detail, HasSubstr("instead of inf"));
}

TEST(Compare, IntegersMatchEagerOrTheTruth) {
  auto eager = at::arange(100);
  auto truth = eager.clone();
  truth[5] = 6;
  Task shown{{eager, truth}, {}};
  EXPECT_EQ(check(eager, shown).outcome, Outcome::verified);
  EXPECT_EQ(check(truth, shown).outcome, Outcome::verified);
  auto wrong = eager.clone();
  wrong[9] = 0;
  auto comparison = check(wrong, shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_EQ(comparison.error.where, "[9]");
  shown.allowance.differences = 4;
  EXPECT_EQ(check(wrong, shown).outcome, Outcome::verified);
}

TEST(Compare, FormComesFirst) {
  auto truth = random_truth();
  auto shown = task(truth);
  auto right = truth.to(at::kFloat);
  EXPECT_EQ(check(right.reshape({30, 40}), shown).outcome, Outcome::wrong_shape);
  EXPECT_EQ(check(right.to(at::kDouble), shown).outcome, Outcome::wrong_dtype);
  auto comparison = check(right.t().contiguous().t(), shown);
  EXPECT_EQ(comparison.outcome, Outcome::verified);
  EXPECT_THAT(comparison.note, HasSubstr("[1, 40]"));
  comparison = check(at::cat({right, right}, 1).narrow(1, 0, 30), shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_strides);
  EXPECT_THAT(comparison.detail, HasSubstr("[60, 1]"));
}

TEST(Compare, ScalarsAndEmptyTensors) {
  auto scalar = task(at::full({}, 3.5, at::kDouble));
  EXPECT_EQ(check(at::full({}, 3.5), scalar).outcome, Outcome::verified);
  EXPECT_EQ(check(at::full({}, 3.51), scalar).outcome, Outcome::wrong_values);
  auto empty = task(at::empty({0, 3}, at::kDouble));
  EXPECT_EQ(check(at::empty({0, 3}), empty).outcome, Outcome::verified);
}

at::Tensor decayed(const at::Tensor& truth) {
  return truth.mul(at::exp2(at::arange(truth.size(0), at::kDouble).neg()).unsqueeze(1));
}

// Rows far below the tensor's rms have a scale of their own; so have columns.
TEST(Compare, RowsThatDecayMayNotBeZeros) {
  for (bool columns : {false, true}) {
    auto truth = columns ? decayed(random_truth()).t().contiguous() : decayed(random_truth());
    auto shown = task(truth);
    auto cut = truth.to(at::kFloat);
    EXPECT_EQ(check(cut, shown).outcome, Outcome::verified);
    (columns ? cut.slice(1, 28) : cut.slice(0, 28)).zero_();
    auto comparison = check(cut, shown);
    EXPECT_EQ(comparison.outcome, Outcome::wrong_values) << columns;
    EXPECT_LT(comparison.error.bound, 1e-10);
    EXPECT_THAT(comparison.error.where, columns ? HasSubstr(", ") : HasSubstr("["));
  }
}

// Elements far below the rest, in whatever order.
TEST(Compare, ManySmallElementsMayNotBeZeros) {
  at::manual_seed(7);
  auto truth = at::randn({4000, 3}, at::kDouble).mul(at::rand({4000, 1}, at::kDouble).mul(-30).exp());
  auto shown = task(truth);
  auto cut = truth.to(at::kFloat);
  EXPECT_EQ(check(cut, shown).outcome, Outcome::verified);
  auto comparison = check(at::where(cut.abs().gt(1e-8), cut, 0), shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_THAT(comparison.detail, HasSubstr("0 instead of"));
}

// What `relu` leaves of a column is one number, small by cancellation: its error is of the size of the others'.
TEST(Compare, ColumnsOfZerosHaveNoScaleOfTheirOwn) {
  auto truth = random_truth();
  truth.select(1, 7).zero_();
  truth[3][7] = 1.75e-4;
  auto shown = task(truth), other = task(random_truth());
  shown.allowance = other.allowance;
  auto value = truth.to(at::kFloat);
  value[3][7] += 8e-8;
  EXPECT_EQ(check(value, shown).outcome, Outcome::verified);
}

TEST(Compare, LowPrecisionOfRowsThatDecay) {
  auto truth = decayed(random_truth());
  auto half = truth.clone();
  half.slice(0, 10, 20).copy_(half.slice(0, 10, 20).mul(1 + 4e-4));
  EXPECT_EQ(check(half.to(at::kFloat), task(truth)).outcome, Outcome::wrong_values);
}

// A part of small numbers is judged by its own scale, and the place is told in the whole.
TEST(Compare, JoinedPartsHaveTheirOwnScales) {
  auto large = random_truth(), small = random_truth().mul(1e-6);
  auto truth = at::cat({large, small}, 1);
  auto shown = task(truth);
  shown.allowance.parts = {{1, 0, 30}, {1, 30, 30}};
  shown.allowance.scaled = {shown.allowance.scaled[0], shown.allowance.scaled[0]};
  EXPECT_EQ(check(truth.to(at::kFloat), shown).outcome, Outcome::verified);
  auto rough = at::cat({large, small.to(at::kHalf).to(at::kDouble)}, 1).to(at::kFloat);
  auto comparison = check(rough, shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  auto one = truth.to(at::kFloat);
  one[3][40] += 1e-5;
  comparison = check(one, shown);
  EXPECT_EQ(comparison.error.where, "[3, 40]");
  EXPECT_THAT(comparison.detail, HasSubstr("worst at [3, 40]"));
}

// What is too large to be described in whole is described where it is wrong first.
TEST(Compare, FindsTheWrongElementOfLargeTensors) {
  at::manual_seed(3);
  auto truth = at::randn({600, 10000}, at::kDouble);
  auto shown = task(truth);
  auto wrong = truth.to(at::kFloat);
  wrong[577][1234] += 1;
  auto comparison = check(wrong, shown);
  EXPECT_EQ(comparison.outcome, Outcome::wrong_values);
  EXPECT_EQ(comparison.error.where, "[577, 1234]");
}

TEST(ErrorScan, IsTheSameByOperators) {
  at::manual_seed(5);
  auto truth = decayed(random_truth()).reshape({8, 5, 30});
  truth[0][1][2] = INFINITY;
  auto eager = truth.to(at::kFloat), value = truth.mul(1 + 1e-6).to(at::kFloat);
  ScaleBuilder host(truth.sizes()), operators(truth.sizes(), ScanPlace::operators);
  for (auto* builder : {&host, &operators}) {
    builder->add(eager.slice(0, 0, 3), truth.slice(0, 0, 3));
    builder->add(eager.slice(0, 3), truth.slice(0, 3));
  }
  auto a = host.finish(), b = operators.finish();
  EXPECT_DOUBLE_EQ(a.rms, b.rms);
  EXPECT_EQ(a.counted, b.counted);
  ASSERT_EQ(a.rows.size(), 40u);
  for (size_t i = 0; i < a.rows.size(); ++i) EXPECT_NEAR(a.rows[i], b.rows[i], 1e-12 * a.rms);
  ErrorMeter on_host(truth.sizes(), a), by_operators(truth.sizes(), a, ScanPlace::operators);
  for (auto* meter : {&on_host, &by_operators}) {
    meter->add(value.slice(0, 0, 3), eager.slice(0, 0, 3), truth.slice(0, 0, 3));
    meter->add(value.slice(0, 3), eager.slice(0, 3), truth.slice(0, 3));
  }
  auto x = on_host.finish(), y = by_operators.finish();
  EXPECT_DOUBLE_EQ(x.scaled.max, y.scaled.max);
  EXPECT_NEAR(x.scaled.rms, y.scaled.rms, 1e-12);
  EXPECT_DOUBLE_EQ(x.scaled.local, y.scaled.local);
  EXPECT_NEAR(x.scaled.usual, y.scaled.usual, 1e-12);
  EXPECT_NEAR(x.scaled.bias, y.scaled.bias, 1e-12);
  EXPECT_EQ(x.scaled.lost, y.scaled.lost);
  EXPECT_DOUBLE_EQ(x.max_abs, y.max_abs);
  EXPECT_DOUBLE_EQ(x.largest_weight, y.largest_weight);
  EXPECT_FALSE(x.specials_wrong || y.specials_wrong);
}

TEST(ErrorScan, TellsMostRowsAndColumnsFromAFewHardOnes) {
  at::manual_seed(5);
  const at::Tensor truth = at::randn({100, 50}, at::kDouble);
  at::Tensor value = truth.mul(1 + 1e-4);
  value[3].add_(1);
  const auto usual_of = [](const at::Tensor& v, const at::Tensor& t) {
    return scan_errors(v, t, t, scale_of(t, t)).scaled.usual;
  };
  EXPECT_LT(usual_of(value, truth), 1e-4);
  EXPECT_GT(usual_of(value, truth), 1e-5);
  EXPECT_DOUBLE_EQ(usual_of(value.t(), truth.t()), usual_of(value, truth));
  const at::Tensor one = truth.reshape({5000}), wrong = value.reshape({5000});
  EXPECT_LT(usual_of(wrong, one), 1e-4);
  // More rows than are told apart.
  const at::Tensor many = at::randn({100'000, 3}, at::kDouble);
  at::Tensor off = many.mul(1 + 1e-4);
  off[70'000].add_(1);
  EXPECT_LT(usual_of(off, many), 1e-4);
  EXPECT_GT(usual_of(off.add(1), many), 0.1);
}

}  // namespace
}  // namespace tilepilot::eval
