// What the judge keeps of a model.
#include "eval/worker/truth/reference_side.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "eval/worker/truth/degeneracy.h"
#include "eval/worker/truth/perturbation.h"
#include "eval/worker/truth/stress/transitions.h"
#include "tests/eval/drawn_graph.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<ReferenceSide> side_of(const std::string& model, const ReferenceOptions& options = {}) {
  auto reference = load_reference(testing::exported("tests/torch/models/" + model + ".py"));
  EXPECT_TRUE(reference.ok());
  auto side = ReferenceSide::make(*std::move(reference), options);
  EXPECT_TRUE(side.ok());
  return side.ok() ? *std::move(side) : nullptr;
}

TEST(ReferenceSide, MakesTrialsAgainThatItDoesNotKeep) {
  const auto all = side_of("scale_rows"), none = side_of("scale_rows", {.kept_bytes = 0});
  ASSERT_EQ(all->trial_count(), 5u);
  ASSERT_EQ(none->trial_count(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    auto kept = all->trial(i), made = none->trial(i);
    ASSERT_TRUE(kept.ok() && made.ok());
    EXPECT_EQ((*kept).get(), all->trial(i)->get());
    EXPECT_NE((*made).get(), none->trial(i)->get());
    EXPECT_TRUE((*kept)->outputs[0].eager.equal((*made)->outputs[0].eager)) << i;
    EXPECT_TRUE((*kept)->outputs[0].truth.equal((*made)->outputs[0].truth)) << i;
  }
}

TEST(ReferenceSide, MakesFewerTrialsWhereTheyTakeLong) {
  const auto side = side_of("scale_rows", {.trial_seconds = 1e-9});
  ASSERT_EQ(side->trial_count(), 2u);
  EXPECT_THAT(side->notes(), Contains(HasSubstr("2 trials instead of 5")));
  EXPECT_NE(side->weights_of_trial(0), side->weights_of_trial(1));
}

bool any_equal(const at::Tensor& a, const at::Tensor& b) { return a.eq(b).any().item<bool>(); }

TEST(ReferenceSide, RedrawsWeights) {
  const auto side = side_of("scale_rows");
  std::set<int> sets;
  for (size_t i = 0; i < side->trial_count(); ++i) sets.insert(side->weights_of_trial(i));
  EXPECT_EQ(sets, (std::set<int>{0, 1, 2}));
  const State given = side->weights(0), redrawn = side->weights(2);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].defined() && given[i].is_floating_point()) { EXPECT_FALSE(any_equal(given[i], redrawn[i])) << i; }
  }
}

TEST(ReferenceSide, KeepsRunningVariancesPositive) {
  const auto side = side_of("batch_stats");
  auto& reference = side->reference();
  for (auto& parameter : reference.parameters) {
    if (parameter.name != "norm.running_var") continue;
    const State redrawn = side->weights(2);
    EXPECT_GT(redrawn[static_cast<size_t>(parameter.value)].min().item<double>(), 0.1);
  }
}

TEST(ReferenceSide, KnowsWhichBuffersTheModelChanges) {
  const auto side = side_of("batch_stats");
  auto trial = side->trial(0);
  ASSERT_TRUE(trial.ok());
  std::vector<std::string> names;
  for (auto& changed : (*trial)->state) names.push_back(changed.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"norm.running_mean", "norm.running_var"}));
}

std::set<StressKind> kinds_of(const ReferenceSide& side) {
  std::set<StressKind> kinds;
  for (size_t i = 0; i < side.stress_count(); ++i) kinds.insert(side.stress(i)->kind);
  return kinds;
}

TEST(ReferenceSide, StressesInputsWhereEagerStaysFinite) {
  EXPECT_THAT(kinds_of(*side_of("soft_rows", {.stress_seconds = 60})),
              ::testing::IsSupersetOf({StressKind::signs, StressKind::large, StressKind::heavy, StressKind::extreme,
                                       StressKind::small, StressKind::zeros, StressKind::ties, StressKind::sorted}));
  EXPECT_THAT(kinds_of(*side_of("masked_rows", {.stress_seconds = 0})), Contains(StressKind::constants));
}

TEST(ReferenceSide, SaysWhichInputsOfAnyTypeAreFixed) {
  EXPECT_THAT(side_of("masked_rows")->notes(), Contains(HasSubstr("input 1 has the same values in every trial")));
  EXPECT_THAT(side_of("scale_rows")->notes(), Not(Contains(HasSubstr("same values"))));
}

TEST(ReferenceSide, StressKeepsTheSignsAndSizesThatItNames) {
  const auto side = side_of("rectified");
  bool all_zero = false;
  for (size_t i = 0; i < side->stress_count(); ++i) {
    auto stress = side->stress(i);
    ASSERT_TRUE(stress.ok());
    const auto& x = stress->trial->inputs[0];
    if (stress->kind == StressKind::signs) { EXPECT_LT(x.min().item<double>(), -0.5); }
    if (stress->kind == StressKind::large) { EXPECT_GT(x.max().item<double>(), 100); }
    if (stress->kind != StressKind::zeros) continue;
    if (!all_zero) { EXPECT_EQ(x.abs().max().item<double>(), 0); }  // the first one; others have some
    EXPECT_TRUE(x.eq(0).any().item<bool>());
    all_zero = true;
  }
}

Expected expected_of(const at::Tensor& truth) { return {truth.to(at::kFloat), truth, {}}; }

Allowance wide_allowance() {
  Allowance allowance;
  allowance.scaled = {{2, 2, 2, 2, 2, 2, 2}};
  return allowance;
}

TEST(Stress, DrawsOtherOffsetsAndOrders) {
  const at::Tensor offsets = at::tensor({0, 5, 9, 40, 64}, at::kLong), positions = at::arange(100, 116, at::kLong);
  const at::Tensor words = at::tensor({3, 3, 7, 1, 0, 5}, at::kInt).to(at::kUInt16);
  std::vector<InputFacts> facts;
  for (int trial = 0; trial < 3; ++trial) see_inputs({offsets, positions, words}, facts);
  std::vector<c10::IValue> leaves{offsets, positions, words};
  apply_stress({StressKind::constants, 50}, facts, 7, leaves);
  const at::Tensor other = leaves[0].toTensor();
  EXPECT_FALSE(other.equal(offsets));
  EXPECT_EQ(other[0].item<int64_t>(), 0);
  EXPECT_EQ(other[-1].item<int64_t>(), 64);
  EXPECT_TRUE(other.diff().gt(0).all().item<bool>());
  EXPECT_FALSE(leaves[1].toTensor().equal(positions));
  EXPECT_TRUE(std::get<0>(leaves[1].toTensor().sort()).equal(positions));
  EXPECT_EQ(leaves[2].toTensor().scalar_type(), at::kUInt16);
  EXPECT_LE(leaves[2].toTensor().to(at::kLong).max().item<int64_t>(), 7);
}

TEST(Stress, ExchangesFewElementsOfConstantsWithoutAnOrder) {
  constexpr int kExchanged = 107;
  const at::Tensor mask = at::ones({64, 64}, at::kBool).tril(),
                   numbers = at::arange(512, at::kLong).mul(7).remainder(512);
  const at::Tensor offsets = at::tensor({0, 5, 9, 40, 64}, at::kLong), wave = at::arange(256, at::kFloat).sin();
  const std::vector<at::Tensor> given{mask, numbers, offsets, wave};
  std::vector<InputFacts> facts;
  for (int trial = 0; trial < 3; ++trial) see_inputs(given, facts);
  std::vector<c10::IValue> leaves{mask, numbers, offsets, wave};
  apply_stress({StressKind::constants, kExchanged}, facts, 7, leaves);
  for (const size_t i : {0, 1, 3}) {
    const at::Tensor other = leaves[i].toTensor();
    const auto changed = other.ne(given[i]).sum().item<int64_t>();
    EXPECT_GE(changed, 2) << i;
    EXPECT_LE(changed, 8) << i;
    EXPECT_TRUE(std::get<0>(other.flatten().sort()).equal(std::get<0>(given[i].flatten().sort()))) << i;
  }
  EXPECT_TRUE(leaves[2].toTensor().equal(offsets));
}

TEST(Stress, ScattersZeros) {
  const at::Tensor x = at::ones({256, 16});
  std::vector<c10::IValue> leaves{x};
  apply_stress({StressKind::zeros, 1}, std::vector<InputFacts>(1), 7, leaves);
  const at::Tensor zeros = leaves[0].toTensor().eq(0).sum(-1);
  EXPECT_GT(zeros.eq(16).sum().item<int64_t>(), 16);
  EXPECT_GT(zeros.eq(1).sum().item<int64_t>(), 16);
  EXPECT_GT(zeros.eq(0).sum().item<int64_t>(), 0);
}

TEST(Stress, RepeatsOffsetsWhereThatIsClear) {
  const at::Tensor offsets = at::tensor({0, 5, 9, 40, 51, 64}, at::kLong);
  std::vector<InputFacts> facts;
  for (int trial = 0; trial < 3; ++trial) see_inputs({offsets.add(trial == 1)}, facts);
  EXPECT_FALSE(are_offsets(offsets, facts[0]));
  facts[0].singled_out.may_repeat = true;
  EXPECT_TRUE(are_offsets(offsets, facts[0]));
  const auto plans = stress_plans({offsets}, facts);
  const auto indices =
      std::count_if(plans.begin(), plans.end(), [](auto& plan) { return plan.kind == StressKind::indices; });
  EXPECT_EQ(indices, 3);
  for (const StressPlan& plan : plans) {
    if (plan.kind != StressKind::indices || plan.strengths != std::vector{101}) continue;
    std::vector<c10::IValue> leaves{offsets};
    apply_stress({plan.kind, plan.strengths[0]}, facts, 7, leaves);
    const at::Tensor other = leaves[0].toTensor();
    EXPECT_EQ(other[0].item<int64_t>(), 0);
    EXPECT_EQ(other[1].item<int64_t>(), 0);
    EXPECT_EQ(other[-1].item<int64_t>(), 64);
    EXPECT_TRUE(other.diff().ge(0).all().item<bool>());
  }
}

// Of sixteen lengths none would be zero in one draw of eight, if each were one by chance.
TEST(Stress, KeepsPartsAsGiven) {
  const at::Tensor x = at::rand({8, 6}).add(1);
  std::vector<c10::IValue> leaves = {x.clone(), x.clone()};
  const std::vector<InputFacts> facts(2);
  const std::vector<KeptPart> kept = {{.input = 0, .axis = 1, .begin = 1, .end = 6, .step = 3}, {.input = 1}};
  apply_stress({StressKind::negative, 0, kept}, facts, 7, leaves);
  const at::Tensor stays = leaves[0].toTensor().eq(x);
  for (int64_t column = 0; column < 6; ++column) {
    const at::Tensor each = stays.select(1, column);
    EXPECT_EQ(column % 3 == 1, each.all().item<bool>()) << column;
    EXPECT_EQ(column % 3 != 1, each.logical_not().all().item<bool>()) << column;
  }
  EXPECT_TRUE(leaves[1].toTensor().equal(x));
}

TEST(Stress, MakesIntegersOfOtherFormsAgree) {
  constexpr int64_t kEnd = int64_t{1} << 40;
  const at::Tensor given = at::randint(kEnd, {64}, at::kLong), other = at::randint(kEnd, {16}, at::kLong);
  std::vector<InputFacts> facts;
  for (int i = 0; i < 2; ++i) see_inputs({other, at::randint(kEnd, {64}, at::kLong)}, facts);
  see_inputs({at::randint(kEnd, {16}, at::kLong), given}, facts);
  facts[1].singled_out.may_repeat = true;
  std::vector<c10::IValue> leaves = {other, given}, nearly = leaves;
  apply_stress({StressKind::agree}, facts, 7, leaves);
  EXPECT_GT(at::isin(leaves[1].toTensor(), other).sum().item<int64_t>(), 16);
  EXPECT_GT(leaves[1].toTensor().eq(given).sum().item<int64_t>(), 16);
  apply_stress({StressKind::nearly}, facts, 7, nearly);
  const at::Tensor away = nearly[1].toTensor().unsqueeze(1).sub(other).abs().amin(1);
  EXPECT_GT(away.lt(257).logical_and(away.gt(0)).sum().item<int64_t>(), 16);
}

// A threshold for each column, one for each row, and one for all.
TEST(Stress, MakesElementsAgreeWithWhatBroadcastsToThem) {
  const at::Tensor given = at::rand({16, 12});
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{12}, {16}, {16, 1}, {}}) {
    const at::Tensor other = at::rand(sizes).add(2);
    const at::Tensor aligned = sizes == std::vector<int64_t>{16} ? other.unsqueeze(1) : other;
    for (const bool first : {true, false}) {  // before what it is compared with, and behind
      std::vector<c10::IValue> leaves =
          first ? std::vector<c10::IValue>{other, given} : std::vector<c10::IValue>{given, other};
      std::vector<InputFacts> facts(2);
      apply_stress({StressKind::agree}, facts, 7, leaves);
      const at::Tensor made = leaves[first ? 1 : 0].toTensor();
      const int64_t count = made.eq(aligned).sum().item<int64_t>();
      EXPECT_GT(count, 64) << at::IntArrayRef(sizes);
      EXPECT_EQ(made.eq(given).sum().item<int64_t>(), given.numel() - count);
      EXPECT_TRUE(leaves[first ? 0 : 1].toTensor().equal(other));
    }
  }
}

TEST(WeightSets, FindsByHalvesWhatMayChange) {
  int calls = 100;
  const std::vector<bool> unfit = {false, true, false, false, false, false, true};
  const auto fits = [&](const std::vector<bool>& change) {
    for (size_t i = 0; i < unfit.size(); ++i)
      if (change[i] && unfit[i]) return false;
    return true;
  };
  std::vector<bool> expected = unfit;
  expected.flip();
  EXPECT_EQ(largest_that_fits(unfit.size(), calls, fits), expected);
  EXPECT_GT(calls, 85);
  calls = 1;  // too few: the rest stays
  EXPECT_EQ(largest_that_fits(unfit.size(), calls, fits), std::vector<bool>(unfit.size()));
}

TEST(Stress, HasAnEmptySequenceInEveryDraw) {
  const at::Tensor lengths = at::arange(1, 17, at::kLong).remainder(7).add(1);
  std::vector<InputFacts> facts;
  for (int trial = 0; trial < 3; ++trial) see_inputs({lengths.roll(trial)}, facts);
  const auto plans = stress_plans({lengths}, facts);
  constexpr int kZeroToo = 105;
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [](auto& plan) { return plan.strengths[0] == kZeroToo; }));
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<c10::IValue> leaves{lengths};
    apply_stress({StressKind::indices, kZeroToo}, facts, seed, leaves);
    const int64_t zeros = leaves[0].toTensor().eq(0).sum().item<int64_t>();
    EXPECT_TRUE(zeros > 0 && zeros < 16) << seed;
  }
}

TEST(Stress, HasAnEmptyRowOfMasksInEveryDraw) {
  const at::Tensor mask = at::ones({4, 64}, at::kBool);
  std::vector<InputFacts> facts;
  for (int trial = 0; trial < 3; ++trial)
    see_inputs({mask.logical_xor(at::eye(4, 64, at::kBool).roll({trial}, {1}))}, facts);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<c10::IValue> leaves{mask};
    apply_stress({StressKind::indices, 0}, facts, seed, leaves);
    EXPECT_TRUE(leaves[0].toTensor().any(-1).logical_not().any().item<bool>()) << seed;
  }
}

TEST(Stress, TakesOneOfSeveralAtLeast) {
  EXPECT_TRUE(some_of_each_draw(at::tensor({0.9, 0.5, 0.7}), 0.125).eq(at::tensor({0, 1, 0})).all().item<bool>());
  EXPECT_TRUE(some_of_each_draw(at::tensor({0.1, 0.5, 0.12}), 0.125).eq(at::tensor({1, 0, 1})).all().item<bool>());
  EXPECT_FALSE(some_of_each_draw(at::tensor({0.5}), 0.125).any().item<bool>());
}

// x - a - b, whose first two terms cancel: another program computes x - (a + b).
TEST(Nudge, RoundsChainsOfAdditionsAtTheirLargestTerm) {
  testing::Drawn drawn;
  const int x = drawn.input({8}), a = drawn.input({8}), b = drawn.input({8});
  const int first = drawn.node("sub.Tensor", {testing::ref(x), testing::ref(a)}, {8});
  const int second = drawn.node("sub.Tensor", {testing::ref(first), testing::ref(b)}, {8});
  drawn.returns(second);
  const at::Tensor large = at::full({8}, 1e6, at::kDouble), one = at::ones({8}, at::kDouble);
  const auto moved = [&](const at::Tensor& term) {
    AddedTerms terms(drawn.graph);
    std::vector<c10::IValue> difference{term.sub(term)}, result{term.sub(term).sub(one)};
    terms.nudge(drawn.graph.nodes[0], {term, term, int64_t{1}}, difference, {.epsilon = 1e-7, .seed = 3});
    EXPECT_EQ(difference[0].toTensor().abs().max().item<double>(), 0);  // its operands were moved themselves
    terms.nudge(drawn.graph.nodes[1], {difference[0], one, int64_t{1}}, result, {.epsilon = 1e-7, .seed = 4});
    return result[0].toTensor().add(1).abs().max().item<double>();
  };
  EXPECT_GT(moved(large), 0.01);
  EXPECT_LE(moved(large), 0.05);
  EXPECT_EQ(moved(one), 0);
  // A mask stays one.
  AddedTerms terms(drawn.graph);
  const at::Tensor masked = at::full({8}, -HUGE_VAL, at::kDouble);
  std::vector<c10::IValue> sum{masked.clone()}, result{masked.clone()};
  terms.nudge(drawn.graph.nodes[0], {one, masked.neg(), int64_t{1}}, sum, {.epsilon = 1e-7, .seed = 3});
  terms.nudge(drawn.graph.nodes[1], {masked, one, int64_t{1}}, result, {.epsilon = 1e-7, .seed = 4});
  EXPECT_TRUE(result[0].toTensor().equal(masked));
}

// The program that keeps what it takes from rows and columns apart, and subtracts both at the end.
at::Tensor balanced_by_sums(const at::Tensor& x) {
  const at::Tensor y = x.mul(10.0);
  at::Tensor u = at::zeros({6, 20, 1}), v = at::zeros({6, 1, 20});
  for (int round = 0; round < 5; ++round) {
    u = y.add(v).logsumexp({-1}, true).neg();
    v = y.add(u).logsumexp({-2}, true).neg();
  }
  return y.add(u).add(v).exp();
}

// While it lives, LibTorch's operators work in this thread: two that wait for each other thousands of times take long
// where other programs run.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

// One very large element, which the model's own order of subtractions loses at once, and this one's carries to the end.
TEST(ReferenceSide, AllowsAnotherOrderOfAdditionsUnderStress) {
  auto reference = load_reference(testing::exported("tests/attacks/models/balanced.py"));
  ASSERT_TRUE(reference.ok());
  const auto made = ReferenceSide::make(*std::move(reference), {.seed = 1, .stress_seconds = 0});
  ASSERT_TRUE(made.ok());
  const ReferenceSide& side = **made;
  const OneThread alone;
  constexpr int kPowers[] = {13, 6, 3}, kPlaces[] = {0, 100, 200};
  for (uint64_t seed = 0; seed < 80; ++seed) {
    for (const int power : kPowers) {
      for (const int place : kPlaces) {
        auto leaves = side.fresh_inputs(seed);
        ASSERT_TRUE(leaves.ok());
        apply_stress({StressKind::single, power + place}, std::vector<InputFacts>(1), seed, *leaves);
        const auto trial = side.trial_on(*leaves, seed, kGivenWeights);
        ASSERT_TRUE(trial.ok());
        const at::Tensor answer = balanced_by_sums(trial->inputs[0]);
        const auto strides = answer.strides().vec();
        const auto right = side.compare_closely({answer, strides}, *trial, 0, side.allowance(0));
        EXPECT_EQ(right.outcome, Outcome::verified) << seed << " " << power << " " << place << ": " << right.detail;
        if (seed > 2) continue;  // looking closely takes longer
        const at::Tensor wrong = answer.mul(1.02);
        EXPECT_NE(side.compare_closely({wrong, strides}, *trial, 0, side.allowance(0)).outcome, Outcome::verified);
      }
    }
  }
  // Where nothing cancels, no more is allowed.
  const auto given = side.trial(0);
  ASSERT_TRUE(given.ok());
  const at::Tensor off = balanced_by_sums((*given)->inputs[0]).mul(1 + 1e-4);
  const auto strides = off.strides().vec();
  EXPECT_EQ(side.compare_closely({off, strides}, **given, 0, side.allowance(0)).outcome, Outcome::wrong_values);
}

TEST(Nudge, MovesEqualElementsAlikeWhereTheirOrderCounts) {
  const at::Tensor few = at::randn({8}, at::kDouble).index_select(0, at::randint(8, {4000}, at::kLong));
  const at::Tensor moved = nudged_by_value(few, 1e-3, 5), by = moved.div(few).sub(1);
  EXPECT_EQ(std::get<0>(at::_unique(moved)).numel(), std::get<0>(at::_unique(few)).numel());
  EXPECT_LE(by.abs().max().item<double>(), 0.5e-3);
  EXPECT_GT(by.std().item<double>(), 0.5e-4);
  EXPECT_FALSE(moved.equal(nudged_by_value(few, 1e-3, 6)));
  EXPECT_TRUE(nudged_by_value(at::full({3}, HUGE_VAL, at::kDouble), 1e-3, 5).isinf().all().item<bool>());
}

// What moves of `made`, the result of `op` along rows, in its first row, whose last element is `special`.
std::vector<double> moved_beside(const std::string& op, double special) {
  at::Tensor made = at::randn({4, 16}, at::kDouble);
  made[0][15] = special;
  GraphNode node;
  node.op = op;
  std::vector<c10::IValue> results{made.clone()};
  nudge_results(node, {}, results, {.epsilon = 1e-7, .seed = 3, .units = 2});
  const at::Tensor moved = results[0].toTensor(), by = moved.sub(made)[0].slice(0, 0, 15).abs();
  EXPECT_EQ(moved[0][15].isfinite().item<bool>(), std::isfinite(special));
  return {by.min().item<double>(), by.max().item<double>()};
}

TEST(Nudge, KnowsHowLargeElementsUsuallyAreBesideInfinitiesAndFills) {
  for (const double special : {-HUGE_VAL, -1e4, -1e9, -9e15, -3.4e38, 1.0}) {
    const auto by = moved_beside("aten::log_softmax", special);
    EXPECT_GT(by[0], 0) << special;
    EXPECT_LT(by[1], 2e-6) << special;
  }
  // Of a sum that cancels they are roundings.
  EXPECT_GT(moved_beside("aten::matmul", 1e16)[1], 1e8);
  EXPECT_LT(moved_beside("aten::matmul", 1e9)[1], 2e-6);
}

// How far the last of these running products may move, relative.
double moved_product(const std::string& op, const std::vector<double>& factors, std::vector<c10::IValue> arguments) {
  const at::Tensor x = at::tensor(factors, at::kDouble);
  const at::Tensor made = op == "aten::prod" ? x.prod() : x.cumprod(0);
  GraphNode node;
  node.op = op;
  arguments.insert(arguments.begin(), x);
  double largest = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::vector<c10::IValue> results{made.clone()};
    nudge_products(node, arguments, results, seed);
    largest = std::max(largest, results[0].toTensor().div(made).sub(1).abs().flatten()[-1].item<double>());
  }
  return largest;
}

TEST(Nudge, LosesInProductsWhatSubnormalNumbersLose) {
  // In float32 1e-42 is 714 of the smallest number: the product is known to a thousandth afterwards, whatever it is.
  const std::vector<double> through = {1e-30, 1e-12, 1e30, 2};
  for (const auto& [op, arguments] :
       {std::pair{"aten::cumprod", std::vector<c10::IValue>{int64_t{0}}}, {"aten::prod", {}}}) {
    EXPECT_GT(moved_product(op, through, arguments), 0.5e-3) << op;
    EXPECT_LT(moved_product(op, through, arguments), 2e-3) << op;
    EXPECT_GT(moved_product(op, {1e-30, 1e-20, 1e30, 2}, arguments), 0.5) << op;
    EXPECT_LT(moved_product(op, {1e-12, 1e-12, 1e10, 2}, arguments), 1e-15) << op;
  }
}

// The largest difference between a normalised operand and the same one with means moved, in units of `epsilon`, and how
// far apart the differences of one mean are.
std::pair<double, double> moved_means(const std::string& op, std::vector<c10::IValue> operands, at::Tensor result,
                                      at::IntArrayRef axes) {
  GraphNode node;
  node.op = op;
  std::vector<c10::IValue> results{result.clone()};
  nudge_means(node, operands, results, 1e-7, 3);
  const at::Tensor change = results[0].toTensor().sub(result).div(1e-7);
  return {change.abs().max().item<double>(), change.amax(axes).sub(change.amin(axes)).max().item<double>()};
}

TEST(Nudge, MovesTheMeansInsideNormalisations) {
  // Around 3, a hundredth apart: the mean of 64 may be 0.2 * 8 * 3 units off, 480 units of the result.
  const at::Tensor x = at::randn({64, 8}, at::kDouble).mul_(0.01).add_(3), none;
  const auto [columns, in_column] =
      moved_means("aten::batch_norm", {x, none, none, none, none, true, 0.1, 0.0, false}, at::zeros_like(x), {0});
  EXPECT_GT(columns, 100);
  EXPECT_LT(columns, 600);
  EXPECT_LT(in_column, 1e-6);
  const at::Tensor gain = at::full({8}, 2, at::kDouble);
  const auto [rows, in_row] = moved_means(
      "aten::layer_norm", {x.t(), std::vector<int64_t>{64}, at::full({64}, 2, at::kDouble), none, 0.0, false},
      at::zeros({8, 64}, at::kDouble), {1});
  EXPECT_GT(rows, 200);
  EXPECT_LT(rows, 1200);
  EXPECT_LT(in_row, 1e-6);
  const at::Tensor channels = x.view({8, 8, 8});
  const auto [groups, in_channel] =
      moved_means("aten::group_norm", {channels, int64_t{4}, gain, none, 0.0, false}, at::zeros_like(channels), {2});
  EXPECT_GT(groups, 50);
  EXPECT_LT(in_channel, 1e-6);
  const auto [instances, in_instance] = moved_means(
      "aten::instance_norm", {channels, none, none, none, none, true, 0.1, 0.0, false}, at::zeros_like(channels), {2});
  EXPECT_GT(instances, 50);
  EXPECT_LT(in_instance, 1e-6);
  // Statistics that are given stay, and so does what is no normalisation.
  EXPECT_EQ(moved_means("aten::batch_norm", {x, none, none, x[0], x[1], false, 0.1, 0.0, false}, at::zeros_like(x), {0})
                .first,
            0);
  EXPECT_EQ(moved_means("aten::relu", {x}, at::zeros_like(x), {0}).first, 0);
}

TEST(Transitions, EndWhereResultsAreTheLastOnes) {
  int calls = 0;
  const auto result_until = [&](int64_t end) {
    return [&calls, end](int64_t steps) -> std::optional<std::string> {
      ++calls;
      return std::to_string(std::min(steps, end));
    };
  };
  for (const int64_t end : {1, 2, 777, 9000, 999'999}) EXPECT_EQ(end_of_transition(result_until(end), 1'000'000), end);
  EXPECT_LT(calls, 5 * 25);
  EXPECT_EQ(end_of_transition(result_until(0), 1'000'000), std::nullopt);
  EXPECT_EQ(end_of_transition(result_until(5'000'000), 1'000'000), std::nullopt);
}

// Counters that index tables end a GPU if they are moved, those that only count do not.
TEST(Transitions, KnowWhetherWholeNumbersAreRead) {
  for (const bool reads : {false, true}) {
    testing::Drawn forward;
    const int x = forward.input({4}), counter = forward.value(GraphValue::Kind::buffer, {}, "int64");
    const int next = forward.node("add.Tensor", {testing::ref(counter), testing::integer(1)}, {});
    const int again = forward.node("add.Tensor", {testing::ref(next), testing::integer(1)}, {});
    forward.node("copy_", {testing::ref(counter), testing::ref(again)}, {});
    forward.returns(forward.node("mul.Tensor", {testing::ref(x), testing::ref(reads ? next : x)}, {4}));
    Reference reference;
    reference.forward = forward.graph;
    reference.parameters.resize(1);
    reference.parameters[0].value = counter;
    reference.parameters[0].is_buffer = true;
    EXPECT_EQ(reads_whole_numbers(reference, GraphUses(reference.forward)), reads);
  }
}

// An output of bad condition has a wide tolerance, but a constant is no answer where eager gives a better one.
TEST(Triviality, NarrowsTheToleranceOfIllConditionedOutputs) {
  at::manual_seed(4);
  const at::Tensor truth = at::randn({30, 40}, at::kDouble);
  const Expected expected = expected_of(truth);
  auto found = find_triviality(expected, wide_allowance(), {{1e-2, 1e-3, 1e-2, 1e-3}}, {});
  EXPECT_EQ(found.answer, "zeros");
  EXPECT_FALSE(found.by_nature);
  ASSERT_EQ(found.narrowed.size(), 1u);
  auto passes = [&](const at::Tensor& answer) { return within(scaled_errors(answer, expected)[0], found.narrowed[0]); };
  EXPECT_FALSE(passes(at::zeros_like(truth)));
  EXPECT_FALSE(passes(at::full_like(truth, truth.mean().item())));
  EXPECT_TRUE(passes(truth.mul(1.01)));
}

TEST(Triviality, IsByNatureWhereEagerIsNoBetter) {
  at::manual_seed(4);
  const at::Tensor truth = at::randn({30, 40}, at::kDouble), constant = at::full({30, 40}, 3.0, at::kDouble);
  EXPECT_TRUE(find_triviality(expected_of(truth), wide_allowance(), {{1, 0.5, 1, 0.5}}, {}).by_nature);
  Allowance narrow;
  narrow.scaled = {{1e-6, 1e-6, 1e-6, 1e-6}};
  const auto found = find_triviality(expected_of(constant), narrow, {{1e-8, 1e-8, 1e-8, 1e-8}}, {});
  EXPECT_EQ(found.answer, "its mean");
  EXPECT_TRUE(found.by_nature);
  EXPECT_TRUE(find_triviality(expected_of(truth), narrow, {{1e-8, 1e-8, 1e-8, 1e-8}}, {}).answer.empty());
}

}  // namespace
}  // namespace tilepilot::eval
