// Truths made in slices are those of the whole graph, and a wrong rule is noticed.
#include "eval/worker/truth/compare/slice_check.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "eval/worker/truth/trial.h"
#include "tests/eval/drawn_graph.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A plan that cuts an axis of every tensor, whatever the operators do along it.
std::optional<GraphSlices> cut_everywhere(const Graph& graph, int axis) {
  GraphSlices slices;
  for (auto& value : graph.values) {
    slices.extent = value.shape[static_cast<size_t>(axis)];
    slices.cuts.push_back(AxisCut{axis, 1});
  }
  return slices;
}
std::optional<GraphSlices> wrong_axis(const GraphUses& uses) { return cut_everywhere(uses.graph(), 1); }

struct MadeTruth {
  bool sliced = false;
  Trial trial;
  at::Tensor moved;
  std::vector<std::string> notes;
};

MadeTruth truth_of(const std::string& model, const ReferenceOptions& options) {
  auto reference = load_reference(testing::exported("tests/torch/models/" + model + ".py"));
  EXPECT_TRUE(reference.ok());
  auto maker = TrialMaker::make(*reference, options);
  EXPECT_TRUE(maker.ok());
  auto trial = (*maker)->make_trial({.input_seed = 5, .weights = 1}, {});
  EXPECT_TRUE(trial.ok());
  auto moved = (*maker)->nudged_truth(*trial, {1e-7});
  EXPECT_TRUE(moved.ok());
  return {(*maker)->is_sliced(), *std::move(trial), moved->outputs.at(0), (*maker)->notes()};
}

TEST(SlicedTruth, IsThatOfTheWholeGraph) {
  for (std::string model : {"soft_rows", "scale_rows", "masked_rows"}) {
    SCOPED_TRACE(model);
    const auto whole = truth_of(model, {}), sliced = truth_of(model, {.exact_bytes = 1});
    EXPECT_FALSE(whole.sliced);
    EXPECT_TRUE(sliced.sliced);
    EXPECT_THAT(sliced.notes, IsEmpty());
    const at::Tensor truth = whole.trial.outputs[0].truth;
    EXPECT_TRUE(sliced.trial.outputs[0].truth.allclose(truth, 1e-12, 1e-12));
    // Inputs are moved by other random numbers of the same size.
    const double far = whole.moved.sub(truth).abs().max().item<double>();
    const double far_in_slices = sliced.moved.sub(truth).abs().max().item<double>();
    EXPECT_GT(far_in_slices, far / 3);
    EXPECT_LT(far_in_slices, far * 3);
  }
}

TEST(SlicedTruth, IsGivenUpWhereARuleIsWrong) {
  const auto whole = truth_of("soft_rows", {});
  const auto wrong = truth_of("soft_rows", {.exact_bytes = 1, .find_slices = wrong_axis});
  EXPECT_FALSE(wrong.sliced);
  EXPECT_THAT(wrong.notes, Contains(HasSubstr("not in slices")));
  EXPECT_TRUE(wrong.trial.outputs[0].truth.equal(whole.trial.outputs[0].truth));
  EXPECT_TRUE(wrong.moved.equal(whole.moved));
}

TEST(SlicedTruth, StaysWholeWhereTheModelChangesStateOrDraws) {
  for (std::string model : {"batch_stats", "in_place", "train_mode"}) {
    EXPECT_FALSE(truth_of(model, {.exact_bytes = 1}).sliced) << model;
  }
}

// What the check says of a graph with one input, cut along an axis.
Status checked(const testing::Drawn& drawn, int axis, const at::Tensor& input) {
  ExactRun run;
  run.slices = cut_everywhere(drawn.graph, axis);
  run.parts = run.slices->extent / 4;
  auto replay = SlicedReplay::prepare(drawn.graph, run, c10::DeviceType::CPU);
  EXPECT_TRUE(replay.ok());
  const SlicedReplay::Hooks hooks{[](const at::Tensor& part, size_t, int64_t) { return part.to(at::kDouble); }};
  const std::vector<c10::IValue> inputs = {input};
  const State state(drawn.graph.values.size());
  auto truth = replay->run({inputs, state, hooks});
  EXPECT_TRUE(truth.ok());
  auto eager = Replay::prepare(drawn.graph)->run(inputs, state);
  EXPECT_TRUE(eager.ok());
  return check_slices(*replay, {inputs, state, hooks}, {{eager->at(0), truth->at(0)}});
}

TEST(SliceCheck, PassesRightPlansAndNoOthers) {
  at::manual_seed(1);
  for (int axis : {0, 1}) {
    testing::Drawn drawn;
    const int x = drawn.input({8, 100});
    drawn.returns(drawn.node("softmax.int", {testing::ref(x), testing::integer(axis)}, {8, 100}));
    EXPECT_TRUE(checked(drawn, 1 - axis, at::randn({8, 100})).ok());
    EXPECT_FALSE(checked(drawn, axis, at::randn({8, 100})).ok());
  }
}

// Each slice is scaled by a statistic of its own, which is close to that of all: eager's error hardly shows it.
TEST(SliceCheck, NoticesStatisticsThatAreAlmostRight) {
  testing::Drawn drawn;
  const int x = drawn.input({1 << 20, 2});
  const int mean = drawn.node("mean.dim", {testing::ref(x), testing::axes({0}), {true}}, {1, 2});
  drawn.returns(drawn.node("div.Tensor", {testing::ref(x), testing::ref(mean)}, {1 << 20, 2}));
  auto slices = cut_everywhere(drawn.graph, 0);
  slices->extent = 1 << 20;
  slices->cuts[static_cast<size_t>(mean)].reset();
  ExactRun run;
  run.slices = slices;
  run.parts = 1 << 18;
  auto replay = SlicedReplay::prepare(drawn.graph, run, c10::DeviceType::CPU);
  ASSERT_TRUE(replay.ok());
  const SlicedReplay::Hooks hooks{[](const at::Tensor& part, size_t, int64_t) { return part.to(at::kDouble); }};
  at::manual_seed(1);
  const std::vector<c10::IValue> inputs = {at::rand({1 << 20, 2})};
  const State state(drawn.graph.values.size());
  auto truth = replay->run({inputs, state, hooks});
  ASSERT_TRUE(truth.ok());
  auto eager = Replay::prepare(drawn.graph)->run(inputs, state);
  auto status = check_slices(*replay, {inputs, state, hooks}, {{eager->at(0), truth->at(0)}});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("other slices"));
}

TEST(SliceCheck, NoticesSumsThatAreCut) {
  testing::Drawn drawn;
  const int x = drawn.input({8, 100});
  drawn.returns(drawn.node("cumsum", {testing::ref(x), testing::integer(1)}, {8, 100}));
  at::manual_seed(1);
  EXPECT_FALSE(checked(drawn, 1, at::randn({8, 100})).ok());
}

}  // namespace
}  // namespace tilepilot::eval
