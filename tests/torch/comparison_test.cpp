// The rule that decides, on tensors: what passes, what does not.
#include "eval/worker/comparison.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

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
  ToleranceBasis basis{machine_epsilon("float32"), 64, scaled_error(eager, result.expected), {}};
  result.allowance.scaled = allowed_error(basis);
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
  rough.allowance.scaled = {1e-3, 1e-6};
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

}  // namespace
}  // namespace tilepilot::eval
