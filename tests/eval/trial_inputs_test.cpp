// What trials change of a model's inputs: values that it singles out, and numbers beside tensors.
#include <gmock/gmock.h>

#include "eval/graph/graph_uses.h"
#include "eval/graph/input_numbers.h"
#include "eval/graph/singled_out.h"
#include "tests/eval/drawn_graph.h"

namespace tilepilot::eval {
namespace {

using ::testing::Contains;
using testing::Drawn;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Drawn drawn_by(const std::string& op) {
  Drawn recipe;
  return recipe.returns_all({recipe.node(op, {testing::integer(0)}, {4})});
}

const FewElements kNoBuffers = [](int) { return std::vector<double>(); };

TEST(SingledOut, FindsWhatElementsAreComparedWith) {
  Drawn forward;
  const int ids = forward.input({4}, "int64");
  const int row = forward.node("unsqueeze", {testing::ref(ids), testing::integer(0)}, {1, 4});
  forward.graph.values[static_cast<size_t>(row)].dtype = "int64";
  const int known = forward.node("ne.Scalar", {testing::ref(row), testing::integer(7)}, {1, 4});
  const int positive = forward.node("ge.Scalar", {testing::ref(ids), testing::integer(0)}, {4});
  forward.returns_all({known, positive});
  const auto found = singled_out(forward.graph, drawn_by("randint").graph, kNoBuffers);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].values, UnorderedElementsAre(7, -1, 0, 1));
  EXPECT_TRUE(found[0].repeats);
  EXPECT_FALSE(found[0].nan);
}

TEST(SingledOut, AsksOfFloatingNumbersForNaNAndBothSidesOfABound) {
  Drawn forward;
  const int x = forward.input({4});
  const int kept = forward.node("nan_to_num", {testing::ref(x)}, {4});
  const int large = forward.node("gt.Scalar", {testing::ref(x), testing::number(0.5)}, {4});
  forward.returns_all({kept, large});
  const auto found = singled_out(forward.graph, drawn_by("randperm").graph, kNoBuffers);
  EXPECT_THAT(found.at(0).values, ElementsAre(0.5, 0.5 - 0x1p-9, 0.5 + 0x1p-9, 1));
  EXPECT_TRUE(found[0].nan && found[0].infinite);
  EXPECT_FALSE(found[0].repeats);
}

// Only NaN differs from itself, and arithmetic passes it on.
TEST(SingledOut, AsksForNaNWhereTheModelAsksInOtherWords) {
  for (const bool by_itself : {true, false}) {
    Drawn forward;
    const int x = forward.input({4});
    const int scaled = forward.node("mul.Tensor", {testing::ref(x), testing::number(1.5)}, {4});
    forward.returns(by_itself ? forward.node("ne.Tensor", {testing::ref(x), testing::ref(x)}, {4})
                              : forward.node("isnan", {testing::ref(scaled)}, {4}));
    EXPECT_TRUE(singled_out(forward.graph, drawn_by("randn").graph, kNoBuffers).at(0).nan) << by_itself;
  }
}

// calls += 1; calls % 10 == 3; calls >= 2000.
TEST(TurningPoints, AreBeforeWhatIsComparedWithACounterThatHasCounted) {
  Drawn forward;
  const int calls = forward.input({}, "int64");
  const auto whole = [&](int value) {
    forward.graph.values[static_cast<size_t>(value)].dtype = "int64";
    return value;
  };
  const int next = whole(forward.node("add_.Tensor", {testing::ref(calls), testing::integer(1)}, {}));
  const int left = whole(forward.node("remainder.Scalar", {testing::ref(next), testing::integer(10)}, {}));
  forward.returns_all({forward.node("eq.Scalar", {testing::ref(left), testing::integer(3)}, {}),
                       forward.node("ge.Scalar", {testing::ref(next), testing::integer(2000)}, {})});
  EXPECT_THAT(turning_points(forward.graph, calls, kNoBuffers), ElementsAre(2, 12, 1998, 1999, 2000));
}

TEST(SingledOut, AsksForTheEndsOfTheRangeThatIntegersAreDrawnFrom) {
  Drawn forward, recipe;
  forward.returns(forward.node("neg", {testing::ref(forward.input({4}, "int64"))}, {4}));
  recipe.returns_all({recipe.node("randint.low", {testing::integer(3), testing::integer(10)}, {4})});
  const auto found = singled_out(forward.graph, recipe.graph, kNoBuffers);
  EXPECT_THAT(found.at(0).values, ElementsAre(3, 9));
  EXPECT_EQ(found[0].range, (std::pair{3.0, 9.0}));
}

TEST(SingledOut, TakesWhatTheModelTellsALossToIgnore) {
  for (const int64_t ignored : {255, -100}) {  // the second is PyTorch's default
    Drawn forward;
    const int x = forward.input({4, 9}), target = forward.input({4}, "int64");
    forward.returns(
        forward.node("cross_entropy_loss",
                     {testing::ref(x), testing::ref(target), {}, testing::integer(1), testing::integer(ignored)}, {}));
    const auto found = singled_out(forward.graph, drawn_by("randint").graph, kNoBuffers);
    EXPECT_THAT(found.at(0).values, IsEmpty());
    const std::vector<double> expected = ignored == -100 ? std::vector<double>() : std::vector<double>{double(ignored)};
    EXPECT_EQ(found.at(1).values, expected);
  }
}

TEST(SingledOut, TakesProbabilitiesForNoClasses) {
  Drawn forward;
  const int x = forward.input({4, 9}), target = forward.input({4, 9});
  forward.returns(forward.node("cross_entropy_loss", {testing::ref(x), testing::ref(target)}, {}));
  EXPECT_THAT(singled_out(forward.graph, drawn_by("randn").graph, kNoBuffers).at(1).values, IsEmpty());
}

TEST(SingledOut, ReadsSmallBuffersOnEitherSide) {
  for (const bool first : {true, false}) {
    Drawn forward;
    const int ids = forward.input({4}, "int64"), pad = forward.input({}, "int64");
    forward.graph.inputs.pop_back();
    forward.graph.values[static_cast<size_t>(pad)].kind = GraphValue::Kind::buffer;
    const int wide = forward.node("expand", {testing::ref(pad), testing::axes({4})}, {4});
    const auto operands =
        first ? std::vector{testing::ref(ids), testing::ref(wide)} : std::vector{testing::ref(wide), testing::ref(ids)};
    forward.returns(forward.node("ne.Tensor", operands, {4}));
    const FewElements buffers = [&](int value) { return value == pad ? std::vector{3.0} : std::vector<double>(); };
    EXPECT_THAT(singled_out(forward.graph, drawn_by("randint").graph, buffers).at(0).values, ElementsAre(3));
  }
}

// x * 4 - 1 >= 5, and |x| == 2.
TEST(SingledOut, LooksThroughArithmeticWithANumber) {
  Drawn forward;
  const int x = forward.input({4}, "int64");
  const int times = forward.node("mul.Tensor", {testing::ref(x), testing::integer(4)}, {4});
  const int less = forward.node("sub.Tensor", {testing::ref(times), testing::integer(1)}, {4});
  const int equal = forward.node("eq.Scalar", {testing::ref(less), testing::integer(5)}, {4});
  const int size = forward.node("abs", {testing::ref(x)}, {4});
  forward.returns_all({equal, forward.node("eq.Scalar", {testing::ref(size), testing::integer(2)}, {4})});
  EXPECT_THAT(singled_out(forward.graph, drawn_by("randn").graph, kNoBuffers).at(0).values,
              UnorderedElementsAre(1.5, 2, -2));
}

TEST(GraphOfConstant, HoldsWhatDependsOnNoInput) {
  Drawn forward;
  const int x = forward.input({4}), weight = forward.weight({4});
  const int edges = forward.node("linspace", {testing::number(0), testing::number(1), testing::integer(4)}, {4});
  const int cubed = forward.node("pow.Tensor_Scalar", {testing::ref(edges), testing::integer(3)}, {4});
  const int moved = forward.node("add.Tensor", {testing::ref(edges), testing::ref(weight)}, {4});
  const int sum = forward.node("add.Tensor", {testing::ref(x), testing::ref(moved)}, {4});
  forward.returns(sum);
  const GraphUses uses(forward.graph);
  const auto part = graph_of_constant(uses, cubed);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->nodes.size(), 2u);
  EXPECT_FALSE(graph_of_constant(uses, moved).has_value());
  EXPECT_FALSE(graph_of_constant(uses, sum).has_value());
}

TEST(SingledOut, LooksBesideTheBoundsOfWholeNumbersAlone) {
  Drawn forward;
  const int lengths = forward.input({4}, "int64"), x = forward.input({4});
  const int some = forward.node("clamp", {testing::ref(lengths), testing::integer(1)}, {4});
  const int positive = forward.node("clamp", {testing::ref(x), testing::number(1)}, {4});
  forward.returns_all({some, positive});
  const auto found = singled_out(forward.graph, drawn_by("randint").graph, kNoBuffers);
  EXPECT_THAT(found.at(0).values, UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(found.at(1).values, IsEmpty());
}

TEST(SingledOut, LeavesNoDoubtWhatRepeatedIndicesMean) {
  for (const char* op : {"index_put", "index_add"}) {
    Drawn forward;
    const int x = forward.input({4}), at = forward.input({4}, "int64");
    forward.returns(forward.node(op, {testing::ref(x), testing::ref(at)}, {4}));
    EXPECT_EQ(singled_out(forward.graph, drawn_by("randperm").graph, kNoBuffers).at(1).may_repeat,
              std::string(op) == "index_add");
  }
}

TEST(SingledOut, LeavesNoDoubtWhereOneNumberIsWritten) {
  Drawn forward;
  const int x = forward.input({4, 4}), at = forward.input({4, 1}, "int64"), offsets = forward.input({4}, "int64");
  const int labels = forward.node("scatter", {testing::ref(x), testing::integer(1), testing::ref(at)}, {4, 4});
  forward.returns(
      forward.node("index_select", {testing::ref(labels), testing::integer(0), testing::ref(offsets)}, {4}));
  const auto found = singled_out(forward.graph, drawn_by("randperm").graph, kNoBuffers);
  EXPECT_FALSE(found.at(1).may_repeat);
  EXPECT_TRUE(found.at(2).may_repeat);
  forward.graph.nodes[0].overload = "value";
  EXPECT_TRUE(singled_out(forward.graph, drawn_by("randperm").graph, kNoBuffers).at(1).may_repeat);
}

TEST(SingledOut, AreTheRarePlacesOfATable) {
  Drawn forward;
  const int ids = forward.input({4}, "int64");
  const int table = forward.value(GraphValue::Kind::buffer, {1000}, "bool");
  forward.returns(forward.node("index_select", {testing::ref(table), testing::integer(0), testing::ref(ids)}, {4}));
  const RarePlaces rare = [&](int value) {
    return value == table ? std::vector<int64_t>{101} : std::vector<int64_t>();
  };
  EXPECT_THAT(singled_out(forward.graph, drawn_by("randint").graph, kNoBuffers, rare).at(0).values, Contains(101));
}

Reference with_a_number_and_a_flag() {
  Drawn forward, recipe;
  const int x = forward.input({4});
  forward.returns(forward.node("mul.Tensor", {testing::ref(x), testing::number(2.5)}, {4}));
  const int drawn = recipe.node("randn", {testing::axes({4})}, {4});
  Reference reference;
  reference.forward = forward.graph;
  reference.inputs = recipe.graph;
  reference.inputs.outputs = {GraphList{testing::ref(drawn), testing::number(2.5), {true}}};
  reference.numbers = {{1, {{0, false, {1}}}}};
  return reference;
}

TEST(InputNumbers, ChangeInTheGraphAndInTheArguments) {
  const Reference reference = with_a_number_and_a_flag();
  EXPECT_EQ(std::get<double>(with_other_numbers(reference, 1).nodes[0].args[1].data), 3.75);
  EXPECT_EQ(std::get<double>(with_other_numbers(reference, -1).nodes[0].args[1].data), 1.25);
  const GraphArgument inputs = inputs_with_other_numbers(reference, 1);
  const auto& list = std::get<GraphList>(inputs.data);
  EXPECT_EQ(std::get<double>(list[1].data), 3.75);
  EXPECT_TRUE(std::get<bool>(list[2].data));
  EXPECT_EQ(std::get<double>(std::get<GraphList>(inputs_with_other_numbers(reference, 0).data)[1].data), 2.5);
  EXPECT_EQ(std::get<int64_t>(other_number({int64_t{4}}, -1).data), 3);
}

TEST(InputNumbers, TellWhichStay) {
  EXPECT_THAT(fixed_numbers(with_a_number_and_a_flag()), ElementsAre("input 2 (true)"));
}

TEST(InputNumbers, TakeAnotherGraphForAFlag) {
  Reference reference = with_a_number_and_a_flag();
  Drawn other;
  const int x = other.input({4});
  other.returns(other.node("neg", {testing::ref(x)}, {4}));
  reference.variants = {{2, {false}, other.graph}, {2, {false}, std::nullopt}};
  EXPECT_THAT(fixed_numbers(reference), IsEmpty());
  EXPECT_EQ(with_other_numbers(reference, kFirstVariant).nodes[0].op, "aten::neg");
  EXPECT_EQ(with_other_numbers(reference, kFirstVariant + 1).nodes[0].op, "aten::mul");
  const GraphArgument inputs = inputs_with_other_numbers(reference, kFirstVariant);
  EXPECT_FALSE(std::get<bool>(std::get<GraphList>(inputs.data)[2].data));
  EXPECT_EQ(std::get<double>(std::get<GraphList>(inputs.data)[1].data), 2.5);
  EXPECT_TRUE(std::get<bool>(std::get<GraphList>(inputs_with_other_numbers(reference, 1).data)[2].data));
}

}  // namespace
}  // namespace tilepilot::eval
