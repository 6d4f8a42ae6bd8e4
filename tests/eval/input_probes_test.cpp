// Which inputs a model's operators ask for beyond those that are always tried.
#include "eval/graph/input_probes.h"

#include <gmock/gmock.h>

#include "tests/eval/drawn_graph.h"

namespace tilepilot::eval {
namespace {

using testing::Drawn;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

GraphArgument of(int id) { return {ValueRef{id}}; }

TEST(InputProbes, LargestNumbersAreAskedForFarOutInputs) {
  Drawn drawn;
  const int x = drawn.input({4, 8});
  const InputProbes probes = input_probes(drawn.returns(drawn.node("max_pool1d", {of(x)}, {4, 4})).graph);
  EXPECT_THAT(probes.below, ElementsAre(34, 27, 20));
  EXPECT_THAT(probes.above, ElementsAre(34, 27, 20));
  EXPECT_TRUE(probes.opposite);
  EXPECT_THAT(probes.beyond_integers, IsEmpty());
  EXPECT_EQ(probes.steps, 0);
}

TEST(InputProbes, ExponentialsAreNotBeyondWhatOneStepRoundsTo) {
  Drawn drawn;
  const int x = drawn.input({4, 8});
  EXPECT_THAT(input_probes(drawn.returns(drawn.node("softmax.int", {of(x)}, {4, 8})).graph).below, ElementsAre(27, 20));
}

TEST(InputProbes, ScoresAreFarBelowZeroWhereInputsAreOnEitherSide) {
  Drawn drawn;
  const int q = drawn.input({4, 8}), k = drawn.input({8, 4}), s = drawn.node("matmul", {of(q), of(k)}, {4, 4});
  const InputProbes probes = input_probes(drawn.returns(drawn.node("softmax.int", {of(s)}, {4, 4})).graph);
  EXPECT_THAT(probes.below, IsEmpty());
  EXPECT_TRUE(probes.opposite);
}

TEST(InputProbes, LayersMakeNumbersLarger) {
  Drawn drawn;
  const int x = drawn.input({4, 8}), w = drawn.weight({4, 8}), s = drawn.node("linear", {of(x), of(w)}, {4, 4});
  EXPECT_THAT(input_probes(drawn.returns(drawn.node("softmax.int", {of(s)}, {4, 4})).graph).below, ElementsAre(16, 13));
}

// Their scores may be on either side of zero, whatever the signs of inputs.
TEST(InputProbes, SharesBehindLayersAreTriedOnBothSides) {
  Drawn drawn;
  const int x = drawn.input({4, 8}), w = drawn.weight({4, 8}), s = drawn.node("linear", {of(x), of(w)}, {4, 4});
  EXPECT_THAT(input_probes(drawn.returns(drawn.node("softmax.int", {of(s)}, {4, 4})).graph).above, ElementsAre(16, 13));
}

TEST(InputProbes, HypotIsAskedForWhatItsSquaresCannotHold) {
  Drawn drawn;
  const int x = drawn.input({4, 8}), y = drawn.input({4, 8});
  const InputProbes probes = input_probes(drawn.returns(drawn.node("hypot", {of(x), of(y)}, {4, 8})).graph);
  EXPECT_THAT(probes.beyond_squares, ElementsAre(70));
  EXPECT_THAT(probes.below_squares, ElementsAre(80));
}

TEST(InputProbes, NumbersBelowAllOthersMayBeInfinite) {
  Drawn drawn;
  const int x = drawn.input({4, 8}), mask = drawn.input({4, 8}, "bool");
  const int filled = drawn.node("masked_fill.Scalar", {of(x), of(mask), {-1e4}}, {4, 8});
  EXPECT_THAT(input_probes(drawn.returns(drawn.node("softmax.int", {of(filled)}, {4, 8})).graph).below, IsEmpty());
}

TEST(InputProbes, RoundingIsAskedForNumbersBeyondIntegers) {
  Drawn drawn;
  const int x = drawn.input({4, 8});
  EXPECT_THAT(input_probes(drawn.returns(drawn.node("floor", {of(x)}, {4, 8})).graph).beyond_integers, ElementsAre(34));
  Drawn converted;
  const int y = converted.input({4, 8}), whole = converted.node("floor", {of(y)}, {4, 8});
  const int made = converted.value(GraphValue::Kind::node, {4, 8}, "int32");
  converted.graph.nodes.push_back({"aten::to", "dtype", {of(whole)}, {}, {made}, "", 2});
  EXPECT_THAT(input_probes(converted.returns(made).graph).beyond_integers, IsEmpty());
}

TEST(InputProbes, StepsAreThoseOfTheScaleThatInputsMake) {
  Drawn drawn;
  const int x = drawn.input({4, 8}), half = drawn.node("mul.Scalar", {of(x), {9.0}}, {4, 8});
  const int top = drawn.node("amax", {of(half)}, {4, 1}), scale = drawn.node("div.Scalar", {of(top), {127.0}}, {4, 1});
  const int steps = drawn.node("div.Tensor", {of(half), of(scale)}, {4, 8});
  EXPECT_EQ(input_probes(drawn.returns(drawn.node("round", {of(steps)}, {4, 8})).graph).steps, 127);
  Drawn plain;
  const int y = plain.input({4, 8});
  EXPECT_EQ(input_probes(plain.returns(plain.node("round", {of(y)}, {4, 8})).graph).steps, 8);
}

}  // namespace
}  // namespace tilepilot::eval
