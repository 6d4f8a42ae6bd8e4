// The parts of the builtin author: views, axes, algebra, grouping, tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "agent/builtin/gpu_tiles.h"
#include "agent/builtin/grouping.h"
#include "agent/builtin/import/simplify.h"
#include "agent/builtin/phases.h"
#include "agent/builtin/tile_plan.h"
#include "agent/builtin/writer/equal_kernels.h"
#include "agent/builtin/writer/forward_writer.h"
#include "agent/builtin/writer/model_source.h"
#include "agent/builtin/writer/tensor_access.h"

namespace tilepilot::agent::builtin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Strided, ReshapeFollowsMemory) {
  Strided x = Strided::contiguous({4, 6});
  EXPECT_EQ(x.reshape({2, 2, 6})->strides, (Shape{12, 6, 1}));
  EXPECT_EQ(x.reshape({24})->strides, (Shape{1}));
  EXPECT_EQ(x.slice(1, 2, 3, 1).reshape({4, 3, 1})->offset, 2);
  EXPECT_FALSE(x.permute({1, 0}).reshape({24}));
  EXPECT_FALSE(x.slice(1, 0, 3, 1).reshape({12}));
}

TEST(Strided, ExpandHasNoStride) {
  Strided row = Strided::contiguous({6}).expand({4, 6});
  EXPECT_EQ(row.strides, (Shape{0, 1}));
  EXPECT_FALSE(row.reshape({24}));
}

TEST(Axes, UnifySplitsTheLongerAtom) {
  AxisSpace space;
  AtomList whole = space.fresh(24), outer = space.fresh(4), inner = space.fresh(6);
  AtomList parts = {outer[0], inner[0]};
  ASSERT_TRUE(space.unify(whole, parts));
  EXPECT_EQ(space.resolve(whole), space.resolve(parts));
  EXPECT_EQ(space.resolve(whole).size(), 2u);
}

// As in a recurrence whose steps are written out.
TEST(Axes, ResolveLongChainsOfEqualAtoms) {
  AxisSpace space;
  const AtomList first = space.fresh(8);
  AtomList last = first;
  for (int step = 0; step < 3000; ++step) {
    const AtomList next = space.fresh(8);
    ASSERT_TRUE(space.unify(next, last));
    last = next;
  }
  EXPECT_EQ(space.resolve(first), last);
  const AtomList halves = {space.fresh(2)[0], space.fresh(4)[0]};
  ASSERT_TRUE(space.unify(last, halves));
  EXPECT_EQ(space.resolve(first), space.resolve(halves));
}

TEST(Axes, UnifyRefusesUnequalFactors) {
  AxisSpace space;
  AtomList a = {space.fresh(4)[0], space.fresh(6)[0]}, b = {space.fresh(3)[0], space.fresh(8)[0]};
  EXPECT_FALSE(space.unify(a, b));
}

// A graph under construction, with sources that are numbered as graph values.
struct GraphFixture : ::testing::Test {
  PrimitiveGraph graph;
  PrimitiveBuilder build{graph};

  int source(Shape shape) {
    Shape strides = contiguous_strides(shape);
    return build.add({.kind = Primitive::Kind::source, .value = 0, .shape = shape, .strides = strides, .hint = "x"});
  }
  int softmax(int x, int axis) {
    int highest = build.reduce(ReduceOp::max, x, {axis});
    int exps = build.map(ScalarOp::exp, {build.map(ScalarOp::sub, {x, highest})});
    return build.map(ScalarOp::div, {exps, build.reduce(ReduceOp::sum, exps, {axis})});
  }
  Grouping group(std::vector<int> outputs) {
    graph.outputs = std::move(outputs);
    graph.drop_dead();
    return group_primitives(graph);
  }
};

using Algebra = GraphFixture;

TEST_F(Algebra, NeutralElementsVanish) {
  int x = source({8});
  EXPECT_EQ(build.map(ScalarOp::add, {x, build.constant(0)}), x);
  EXPECT_EQ(build.map(ScalarOp::mul, {build.constant(1), x}), x);
  EXPECT_EQ(build.map(ScalarOp::neg, {build.map(ScalarOp::neg, {x})}), x);
  int column = source({8, 1});
  EXPECT_EQ(build.reduce(ReduceOp::sum, column, {1}), column);
}

TEST_F(Algebra, KnownNumbersAreComputed) {
  const int log = build.map(ScalarOp::log, {build.constant(100)});
  EXPECT_DOUBLE_EQ(build.number(log).value(), std::log(100));
  EXPECT_DOUBLE_EQ(build.number(build.map(ScalarOp::minimum, {log, build.constant(2)})).value(), 2);
  const int halves = build.map(ScalarOp::div, {build.constant(1, "int64"), build.constant(2, "int64")});
  EXPECT_EQ(build.at(halves).dtype, "float32");
  const auto product = [&](double a, double b, const char* dtype) {
    return build.number(build.map(ScalarOp::mul, {build.constant(a, dtype), build.constant(b, dtype)}));
  };
  EXPECT_EQ(product(6, 7, "int64"), 42);
  EXPECT_FALSE(product(1e18, 16, "int64"));  // wraps
  EXPECT_FALSE(product(16, 16, "uint8"));
  EXPECT_TRUE(std::isnan(*build.number(build.map(ScalarOp::maximum, {build.constant(1), build.constant(NAN)}))));
}

TEST_F(Algebra, TanhOfSoftplusIsAQuotient) {
  const auto tanh_of = [&](double threshold, ScalarOp comparison = ScalarOp::gt) {
    const int x = source({8}), smooth = build.map(ScalarOp::log1p, {build.map(ScalarOp::exp, {x})});
    const int beyond = build.map(comparison, {x, build.constant(threshold)});
    return build.at(build.map(ScalarOp::tanh, {build.map(ScalarOp::select, {beyond, x, smooth})})).op;
  };
  EXPECT_EQ(tanh_of(20), ScalarOp::div);
  EXPECT_EQ(tanh_of(2), ScalarOp::tanh);  // tanh(2) is not 1
  EXPECT_EQ(tanh_of(20, ScalarOp::lt), ScalarOp::tanh);
}

TEST_F(Algebra, NestedScalesFold) {
  int scaled =
      build.map(ScalarOp::mul, {build.map(ScalarOp::mul, {source({8}), build.constant(0.5)}), build.constant(4)});
  EXPECT_EQ(build.number(build.at(scaled).args[1]), 2.0);
}

TEST_F(Algebra, SumAfterProductNeedsNoProduct) {
  int x = source({16, 32}), weight = source({64, 32}), bias = source({64});
  int linear = build.map(ScalarOp::add, {build.product(x, weight, {16, 64}), bias});
  graph.outputs = {build.reduce(ReduceOp::sum, build.map(ScalarOp::mul, {linear, build.constant(3)}), {1})};
  PrimitiveGraph simple = simplify(graph);
  for (auto& node : simple.nodes) EXPECT_NE(node.kind, Primitive::Kind::product);
  EXPECT_EQ(simple.at(simple.outputs[0]).shape, (Shape{16, 1}));
}

TEST_F(Algebra, SumKeepsAProductThatOthersNeed) {
  int linear = build.product(source({16, 32}), source({64, 32}), {16, 64});
  graph.outputs = {build.reduce(ReduceOp::sum, linear, {1}), linear};
  PrimitiveGraph same = simplify(graph);
  EXPECT_EQ(same.at(same.outputs[1]).kind, Primitive::Kind::product);
  EXPECT_EQ(same.at(same.outputs[0]).kind, Primitive::Kind::reduce);
}

TEST_F(Algebra, SumStopsAtNonlinearMaps) {
  int linear = build.product(source({16, 32}), source({64, 32}), {16, 64});
  graph.outputs = {build.reduce(ReduceOp::sum, build.map(ScalarOp::exp, {linear}), {1})};
  PrimitiveGraph same = simplify(graph);
  EXPECT_TRUE(std::any_of(same.nodes.begin(), same.nodes.end(),
                          [](auto& node) { return node.kind == Primitive::Kind::product; }));
}

TEST_F(Algebra, PiecesOfAMapAreMapsOfPieces) {
  int whole = build.map(ScalarOp::exp, {source({16, 32})});
  int left = build.slice(whole, {.kind = ViewOp::Kind::slice, .axis = 1}, 16);
  int right = build.slice(whole, {.kind = ViewOp::Kind::slice, .axis = 1, .start = 16}, 16);
  graph.outputs = {build.map(ScalarOp::mul, {left, right})};
  PrimitiveGraph simple = simplify(graph);
  for (auto& node : simple.nodes)
    if (node.kind == Primitive::Kind::map) { EXPECT_EQ(node.shape, (Shape{16, 16})); }
}

TEST_F(Algebra, AMapThatOthersNeedIsNotCutUp) {
  int whole = build.map(ScalarOp::exp, {source({16, 32})});
  graph.outputs = {build.slice(whole, {.kind = ViewOp::Kind::slice, .axis = 1}, 16), whole};
  PrimitiveGraph same = simplify(graph);
  EXPECT_EQ(same.at(same.outputs[0]).kind, Primitive::Kind::view);
}

TEST_F(Algebra, NumbersTakeTheTypeOfWhatTheyMeet) {
  int x = source({8});
  EXPECT_EQ(build.at(build.at(build.map(ScalarOp::maximum, {x, build.constant(0, "int64")})).args[1]).dtype, "float32");
  EXPECT_EQ(build.at(build.at(build.map(ScalarOp::gt, {x, build.constant(3, "int64")})).args[1]).dtype, "float32");
}

using Groups = GraphFixture;

TEST_F(Groups, AViewOfAMemberIsTakenFromItsMemory) {
  int x = build.map(ScalarOp::exp, {source({4, 6})});
  int flat = build.reshape(x, {24});
  int sum = build.map(ScalarOp::add, {flat, source({24})});
  int call = build.add({.kind = Primitive::Kind::call,
                        .args = {build.slice(flat, {.kind = ViewOp::Kind::slice, .axis = 0}, 12)},
                        .shape = {12},
                        .strides = {1}});
  Grouping groups = group({sum, call});
  ASSERT_EQ(groups.groups.size(), 1u);
  for (int id : groups.groups[0].outputs) EXPECT_EQ(graph.at(id).kind, Primitive::Kind::map);
  EXPECT_EQ(groups.groups[0].outputs.size(), 2u);
}

TEST_F(Groups, SoftmaxWithNeighboursIsOne) {
  int x = build.map(ScalarOp::mul, {source({64, 128}), build.constant(0.5)});
  Grouping groups = group({build.map(ScalarOp::add, {softmax(x, 1), source({128})})});
  ASSERT_EQ(groups.groups.size(), 1u);
  EXPECT_EQ(groups.groups[0].axes.reduced.size(), 1u);
}

TEST_F(Groups, DifferentAxesStayApart) {
  Grouping groups = group({build.reduce(ReduceOp::sum, softmax(source({64, 128}), 1), {0})});
  EXPECT_EQ(groups.groups.size(), 2u);
}

TEST_F(Groups, IndependentReductionsOfOneShapeJoin) {
  int a = build.reduce(ReduceOp::sum, source({64, 128}), {1}), b = build.reduce(ReduceOp::max, source({64, 128}), {1});
  EXPECT_EQ(group({build.map(ScalarOp::div, {a, b})}).groups.size(), 1u);
}

TEST_F(Groups, AValueAndItsTransposeDoNotShareLoops) {
  int x = source({32, 32});
  int sum = build.map(ScalarOp::exp, {x});
  Grouping groups = group({build.map(ScalarOp::add, {sum, build.permute(sum, {1, 0})})});
  for (auto& one : groups.groups) EXPECT_LT(one.members.size(), 3u);
}

// What is read again after it was written would be another number.
TEST_F(Groups, BuffersAreWrittenWhereNothingElseReadsThem) {
  const int x = source({512, 64}), running = source({64}), other = source({64});
  const int shifted = build.map(ScalarOp::sub, {x, other});
  const int mean = build.reshape(build.mean(shifted, {0}), {64});
  auto update = [&](int buffer) {
    const int value = build.map(ScalarOp::add, {buffer, mean});
    return build.add({.kind = Primitive::Kind::update, .number = 1, .args = {buffer, value}, .effect = true});
  };
  update(running);
  update(other);
  const Grouping grouping = group({build.map(ScalarOp::mul, {shifted, mean})});
  ASSERT_EQ(grouping.groups.size(), 1u);
  ASSERT_EQ(grouping.groups[0].updates.size(), 1u);
  EXPECT_EQ(graph.at(grouping.groups[0].updates[0]).args[0], 1);
}

TEST_F(Groups, NoCycleThroughACall) {
  int x = build.map(ScalarOp::exp, {source({32, 32})});
  int call = build.add({.kind = Primitive::Kind::call, .args = {x}, .shape = {32, 32}, .strides = {32, 1}});
  Grouping groups = group({build.map(ScalarOp::add, {x, call})});
  EXPECT_EQ(groups.groups.size(), 2u);
}

using Tiles = GraphFixture;

TEST_F(Tiles, RowsAreHeldWholeWhileShort) {
  Grouping groups = group({softmax(source({64, 128}), 1)});
  TilePlan tiles = plan_tiles(graph, groups.groups[0], {});
  EXPECT_TRUE(tiles.resident());
  EXPECT_EQ(tiles.column_block, 128);
  Grouping longer = group({softmax(source({4, 1 << 20}), 1)});
  TilePlan blocked = plan_tiles(graph, longer.groups[0], {});
  EXPECT_FALSE(blocked.resident());
  EXPECT_TRUE(blocked.ragged().empty());
}

TEST_F(Tiles, NeighbouringAxesMerge) {
  int x = build.map(ScalarOp::add, {source({4, 8, 16, 32}), source({16, 32})});
  Grouping groups = group({x});
  TilePlan tiles = plan_tiles(graph, groups.groups[0], {});
  ASSERT_EQ(tiles.loops.size(), 2u);
  EXPECT_EQ(tiles.loop(0).extent, 32);
  EXPECT_EQ(tiles.loop(1).extent, 512);
}

TEST_F(Tiles, HalvesAreOffsetsOfOneTensor) {
  int x = source({64, 256});
  int left = build.slice(x, {.kind = ViewOp::Kind::slice, .axis = 1}, 128);
  int right = build.slice(x, {.kind = ViewOp::Kind::slice, .axis = 1, .start = 128}, 128);
  Grouping groups = group({build.map(ScalarOp::mul, {left, right})});
  const Group& one = groups.groups.at(0);
  TilePlan tiles = plan_tiles(graph, one, {});
  auto& [id, leaf] = *one.axes.leaves.rbegin();
  auto access = describe_access(tiles, tiles.strides.at(id), leaf.view.offset, 64 * 256);
  ASSERT_TRUE(access);
  EXPECT_EQ(access->shape_text(), "(M, 2 * N)");
  EXPECT_EQ(access->axes[1].start, "N");
}

TileSizes of_a_gpu() {
  TileSizes sizes;
  sizes.gpu = gpu_of("cuda:sm_90a");
  return sizes;
}

TEST_F(Tiles, OfAGpuAreTheModels) {
  ASSERT_TRUE(gpu_of("emulate:sm_80") && gpu_of("cuda:sm_90a"));
  EXPECT_EQ(gpu_of("emulate:sm_80")->target, "sm_80");
  EXPECT_FALSE(gpu_of("cpu"));
  Grouping groups = group({softmax(source({4096, 4096}), 1)});
  TilePlan tiles = plan_tiles(graph, groups.groups[0], of_a_gpu());
  const auto best = recommend(targets::gpu::ReductionProblem{4096, 4096, ir::kFloat32}, *of_a_gpu().gpu, 2);
  EXPECT_EQ(tiles.row_block, best[0].block_m);
  EXPECT_EQ(tiles.column_block, best[0].block_n);
  EXPECT_EQ(tiles.threads, best[0].threads);
  EXPECT_TRUE(tiles.resident());
  TileSizes second = of_a_gpu();
  second.choice = 1;
  EXPECT_EQ(plan_tiles(graph, groups.groups[0], second).threads, best[1].threads);
}

TEST_F(Tiles, OfAGpuHoldWholeChannels) {
  int x = source({8, 64, 3136});
  int mean = build.reduce(ReduceOp::sum, x, {0, 2});
  Grouping groups = group({build.map(ScalarOp::sub, {x, mean})});
  TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
  EXPECT_TRUE(tiles.resident());
  EXPECT_TRUE(tiles.rows_first);
  EXPECT_EQ(tiles.row_block * tiles.column_block, 8 * 3136);
  EXPECT_EQ(tiles.blocks(), 64);
}

TEST_F(Tiles, OfAGpuSumColumnsInManyBlocks) {
  Grouping groups = group({build.reduce(ReduceOp::sum, source({4096, 4096}), {0})});
  TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
  EXPECT_GE(tiles.column_block, 32) << "lanes of a warp read neighbours";
  EXPECT_GE(tiles.blocks(), 100);
}

// Each thread a column, where blocks of so many are enough for all multiprocessors.
TEST_F(Tiles, OfAGpuSumWideColumnsByManyThreads) {
  Grouping groups = group({build.reduce(ReduceOp::sum, source({128, 4096, 4095}), {1})});
  const TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
  EXPECT_EQ(tiles.column_block, 1024);
  EXPECT_EQ(tiles.threads, 1024);
  EXPECT_EQ(tiles.row_block, 8) << "odd rows have no vectors";
}

// Of 1849, a divisor, threads have 14.4 each and no vectors.
TEST_F(Tiles, OfAGpuHangOverTheEndRatherThanLeaveThreadsWithoutWork) {
  const int x = source({1024, 66564 * 8});
  const int sums = build.reduce(ReduceOp::sum, x, {1});
  Grouping groups = group({build.map(ScalarOp::sub, {x, sums})});
  EXPECT_EQ(plan_tiles(graph, groups.groups.at(0), of_a_gpu()).column_block, 4096);
  const int even = source({1024, 1 << 20});
  groups = group({build.map(ScalarOp::sub, {even, build.reduce(ReduceOp::sum, even, {1})})});
  EXPECT_TRUE(plan_tiles(graph, groups.groups.at(0), of_a_gpu()).ragged().empty());
}

// Two reductions of rows that no tile holds are found in one phase, where one follows from the other.
struct InOnePass : Tiles {
  size_t phases(int result) {
    Grouping groups = group({result});
    const TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
    EXPECT_FALSE(tiles.resident());
    return plan_phases(graph, groups.groups.at(0), tiles).phases.size();
  }
  int squares_of(int x, int from, int axis) {
    const int centered = build.map(ScalarOp::sub, {x, from});
    return build.reduce(ReduceOp::sum, build.map(ScalarOp::mul, {centered, centered}), {axis});
  }
};

TEST_F(InOnePass, FindsMomentsOfLongRows) {
  const int x = source({4096, 50000}), mean = build.mean(x, {1}), centered = build.map(ScalarOp::sub, {x, mean});
  EXPECT_EQ(phases(build.map(ScalarOp::div, {centered, squares_of(x, mean, 1)})), 2u);
}

TEST_F(InOnePass, FindsSumsOfExponentials) { EXPECT_EQ(phases(softmax(source({4096, 50000}), 1)), 2u); }

// Where the sum is NaN the maximum may be another one.
TEST_F(InOnePass, LeavesAMaximumAloneThatIsAResultItself) {
  const int x = source({4096, 50000}), highest = build.reduce(ReduceOp::max, x, {1});
  const int total =
      build.reduce(ReduceOp::sum, build.map(ScalarOp::exp, {build.map(ScalarOp::sub, {x, highest})}), {1});
  const int ratio = build.map(ScalarOp::div, {x, total}), doubled = build.map(ScalarOp::add, {x, highest});
  Grouping groups = group({ratio, doubled});
  for (const Group& one : groups.groups) EXPECT_TRUE(find_one_pass(graph, one).empty());
}

TEST_F(InOnePass, LeavesOtherSquaresAlone) {
  const int x = source({4096, 50000}), sum = build.reduce(ReduceOp::sum, x, {1});
  const int third = build.map(ScalarOp::div, {sum, build.constant(16384)});
  EXPECT_EQ(phases(build.map(ScalarOp::div, {x, squares_of(x, third, 1)})), 3u) << "not the mean";
  const int highest = build.reduce(ReduceOp::max, x, {1});
  EXPECT_EQ(phases(build.map(ScalarOp::div, {x, squares_of(x, highest, 1)})), 3u);
  // A mean of each row, taken from each column.
  const int square = source({40000, 40000}), means = build.mean(square, {1});
  const int turned = build.permute(means, {1, 0});
  Grouping groups = group({squares_of(square, turned, 1)});
  for (const Group& one : groups.groups) EXPECT_TRUE(find_one_pass(graph, one).empty());
}

// Rows less their columns' means.
TilePlan centered_rows(GraphFixture& fixture, int64_t rows, int64_t columns) {
  const int x = fixture.source({rows, columns});
  const int sums = fixture.build.reduce(ReduceOp::sum, x, {0});
  Grouping groups = fixture.group({fixture.build.map(ScalarOp::sub, {x, sums})});
  return plan_tiles(fixture.graph, groups.groups.at(0), of_a_gpu());
}

// One block, or some, would walk through all rows alone.
TEST_F(Tiles, OfAGpuShareLongReductions) {
  for (const int64_t columns : {48, 300, 4096}) {
    const TilePlan tiles = centered_rows(*this, 204800, columns);
    EXPECT_EQ(tiles.split_loop, tiles.row) << columns;
    EXPECT_GE(tiles.blocks(), 132) << columns;
    EXPECT_FALSE(has_too_few_blocks(tiles, 4 * 204800 * columns, *of_a_gpu().gpu)) << columns;
  }
}

TEST_F(Tiles, OfAGpuShareNothingWhereItIsShort) {
  EXPECT_EQ(centered_rows(*this, 100, 48).split, 1);
  EXPECT_EQ(centered_rows(*this, 512, 1 << 17).split, 1);
}

// Steps that no split divides evenly hang over the end: 17 x 8192 elements of each of 30 rows and a few.
TEST_F(Tiles, OfAGpuKnowStepsOverTheEnd) {
  const int x = source({3, 1, 8192 * 211});
  const int sums = build.reduce(ReduceOp::sum, x, {2});
  Grouping groups = group({build.map(ScalarOp::sub, {x, sums})});
  const TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
  ASSERT_GT(tiles.split, 1);
  EXPECT_EQ(tiles.ragged().empty(),
            tiles.loop(tiles.split_loop).extent % (tiles.block(tiles.split_loop) * tiles.split) == 0);
}

TEST_F(Tiles, OfAGpuFitTinyProblems) {
  for (const Shape& shape : {Shape{1}, {7}, {3, 5}, {2, 1, 4}}) {
    Grouping groups = group({build.map(ScalarOp::exp, {source(shape)})});
    TilePlan tiles = plan_tiles(graph, groups.groups.at(0), of_a_gpu());
    EXPECT_GE(tiles.blocks(), 1);
    EXPECT_EQ(tiles.threads % 32, 0);
  }
}

// PyTorch's library has blocks that share a sum.
TEST_F(Tiles, OfAGpuLeaveLongSumsOfFewResults) {
  const auto has_tiles = [](int64_t m, int64_t n, int64_t k) {
    PrimitiveGraph graph;
    PrimitiveBuilder build(graph);
    const auto matrix = [&](Shape shape) {
      return build.add({.kind = Primitive::Kind::source,
                        .value = 0,
                        .shape = shape,
                        .strides = contiguous_strides(shape),
                        .dtype = "bfloat16"});
    };
    const int product = build.product(matrix({m, k}), matrix({n, k}), {m, n});
    graph.outputs = {build.map(ScalarOp::tanh, {product})};
    const Group group = group_primitives(graph).groups.at(0);
    const auto loops = product_loops(graph, group, product);
    return gpu_product_tiles(graph, *loops, product, *gpu_of("cuda:sm_90a"), 0).has_value();
  };
  EXPECT_TRUE(has_tiles(4096, 4096, 4096));
  EXPECT_TRUE(has_tiles(256, 4096, 4096));
  EXPECT_FALSE(has_tiles(256, 256, 524288));
}

TEST(Kernels, AreOneWhateverTheirParametersAreCalled) {
  const std::string body =
      "def main(\n    x: T.Tensor((M,), dtype),\n    u: T.Tensor((M,), dtype),\n):\n    u_value = u[i]\n"
      "    x[i] = u_value - T.exp(x[i + 1])\n";
  auto with = [&](std::string from, const std::string& to) {
    std::string text = body;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    return text;
  };
  EXPECT_TRUE(equal_but_for_names(body, body));
  EXPECT_TRUE(equal_but_for_names(body, with("u", "x_2")));
  EXPECT_FALSE(equal_but_for_names(body, with("u_value - ", "u_value + ")));
  EXPECT_FALSE(equal_but_for_names(body, with("[i + 1]", "[i + 2]")));
  EXPECT_FALSE(equal_but_for_names(body, with("exp", "log")));
  EXPECT_FALSE(equal_but_for_names(body, with("(M,)", "(N,)")));
  // Names that trade places, or become one, are other operands.
  EXPECT_FALSE(equal_but_for_names(body, with("u[i]", "x[i]")));
  EXPECT_FALSE(equal_but_for_names(body, with("exp(x", "exp(u")));
  EXPECT_FALSE(equal_but_for_names(body, body + "    x[i] = 0\n"));
}

TEST(PickBlock, PrefersDivisors) {
  EXPECT_EQ(pick_block(100, 512), 100);
  EXPECT_EQ(pick_block(3136, 1000), 784);
  EXPECT_EQ(pick_block(10007, 512), 512);
}

TEST(ParameterPath, IndexesContainers) {
  EXPECT_EQ(parameter_path("net.0.weight"), "self.net[0].weight");
  EXPECT_EQ(parameter_path("scale"), "self.scale");
}

constexpr const char* kModel = R"(import math
import torch
import torch.nn as nn

WIDTH = 4

def width(n):
    return n * WIDTH

def unused():
    return 0

class Inner(nn.Module):
    def __init__(self, n):
        super(Inner, self).__init__()
        self.linear = nn.Linear(n, width(n))
        self.reset()

    def reset(self):
        nn.init.zeros_(self.linear.weight)

    def forward(self, x):
        return self.linear(x) * math.pi

class Model(nn.Module):
    def __init__(self, n):
        super(Model, self).__init__()
        self.inner = Inner(n)

    def forward(self, x):
        return self.inner(x)
)";

TEST(ModelSource, KeepsWhatConstructionNeeds) {
  auto kept = keep_source(kModel, "model.py");
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(kept->init, HasSubstr("super().__init__()"));
  EXPECT_THAT(kept->helpers, HasSubstr("WIDTH = 4"));
  EXPECT_THAT(kept->helpers, HasSubstr("def reset(self)"));
  EXPECT_THAT(kept->helpers, Not(HasSubstr("unused")));
  EXPECT_THAT(kept->helpers, Not(HasSubstr("forward")));
  EXPECT_THAT(kept->imports, ElementsAre());
}

// For the mode that the kernels are not written for.
TEST(ModelSource, KeepsForwardWhereItIsWanted) {
  auto kept = keep_source(kModel, "model.py", /*with_forward*/ true);
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(kept->members, HasSubstr("    def forward_as_written(self, x):\n        return self.inner(x)\n"));
  EXPECT_THAT(kept->helpers, HasSubstr("return self.linear(x) * math.pi"));
  EXPECT_THAT(kept->helpers, HasSubstr("def reset(self)"));
  EXPECT_THAT(kept->imports, ElementsAre("import math"));
}

TEST(ModelSource, FailWithoutModel) {
  auto kept = keep_source("class Other:\n    pass\n", "model.py");
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.error().message, HasSubstr("no `Model`"));
}

}  // namespace
}  // namespace tilepilot::agent::builtin
