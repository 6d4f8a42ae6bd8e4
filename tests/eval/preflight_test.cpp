// Costs, shortcuts, the roofline and the memory that judging takes, on graphs made by hand.
#include "eval/graph/preflight.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/eval/drawn_graph.h"

namespace tilepilot::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using testing::axes;
using testing::Drawn;
using testing::number;
using testing::ref;
using testing::refs;

std::vector<std::string> kinds(const Graph& graph) {
  std::vector<std::string> names;
  for (auto& shortcut : find_shortcuts(GraphUses(graph))) names.emplace_back(to_string(shortcut.kind));
  return names;
}

TEST(GraphCost, CountsProductsBytesAndDeadWork) {
  Drawn drawn;
  int x = drawn.input({128, 256}), w = drawn.weight({512, 256}), b = drawn.weight({512});
  int y = drawn.node("linear", {ref(x), ref(w), ref(b)}, {128, 512});
  drawn.node("matmul", {ref(y), ref(w)}, {128, 256});
  drawn.returns(drawn.node("relu_", {ref(y)}, {128, 512}));
  auto cost = cost_of(GraphUses(drawn.graph));
  EXPECT_EQ(cost.product_flops, 2.0 * 128 * 256 * 512);
  EXPECT_EQ(cost.dead_flops, 2.0 * 128 * 256 * 512);
  EXPECT_EQ(cost.input_bytes, 128 * 256 * 4);
  EXPECT_EQ(cost.weight_bytes, (512 * 256 + 512) * 4);
  EXPECT_EQ(cost.least_bytes, cost.input_bytes + cost.weight_bytes + cost.output_bytes);
  EXPECT_EQ(cost.launches, 3);
}

TEST(GraphCost, CountsConvolutionsBothWays) {
  Drawn drawn;
  int x = drawn.input({2, 8, 16, 16}), w = drawn.weight({8, 4, 3, 3});
  int y = drawn.node("conv_transpose2d", {ref(x), ref(w)}, {2, 4, 18, 18});
  int v = drawn.weight({6, 2, 3, 3});
  drawn.returns(drawn.node("conv2d", {ref(y), ref(v), {}, axes({1, 1}), axes({0, 0}), axes({1, 1}), {int64_t{2}}},
                           {2, 6, 16, 16}));
  EXPECT_EQ(cost_of(GraphUses(drawn.graph)).product_flops, 2.0 * 2 * 8 * 256 * 4 * 9 + 2.0 * 2 * 6 * 256 * 2 * 9);
}

TEST(GraphCost, ReadsOnlyWhatIsSelected) {
  Drawn drawn;
  int x = drawn.input({1000, 64});
  int part = drawn.node("select", {ref(x), {int64_t{1}}, {int64_t{3}}}, {1000});
  drawn.returns(drawn.node("relu", {ref(part)}, {1000}));
  EXPECT_EQ(cost_of(GraphUses(drawn.graph)).least_bytes, 2 * 1000 * 4);
}

TEST(LivePeak, FreesAfterTheLastUse) {
  Drawn drawn;
  int x = drawn.input({1024});
  for (int i = 0; i < 10; ++i) x = drawn.node("relu", {ref(x)}, {1024});
  x = drawn.node("view", {ref(x), axes({32, 32})}, {32, 32});
  drawn.returns(x);
  auto peak = live_peak(GraphUses(drawn.graph));
  EXPECT_EQ(peak.eager, 2 * 1024 * 4);
  EXPECT_EQ(peak.exact, 2 * 1024 * 8);
}

TEST(Shortcuts, SumOverFeaturesIsAMatrixVectorProduct) {
  Drawn drawn;
  int x = drawn.input({128, 256}), w = drawn.weight({512, 256});
  int y = drawn.node("linear", {ref(x), ref(w)}, {128, 512});
  int half = drawn.node("mul", {ref(y), number(0.5)}, {128, 512});
  drawn.returns(drawn.node("sum", {ref(half), axes({-1})}, {128}));
  auto found = find_shortcuts(GraphUses(drawn.graph));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, ShortcutKind::collapse);
  EXPECT_EQ(found[1].kind, ShortcutKind::commute);
  EXPECT_NEAR(found[0].saved_flops, 2.0 * 128 * 256 * 511, 1);
  // With something between that is not affine, or over the rows, nothing collapses.
  drawn.graph.nodes[1].op = "aten::tanh";
  drawn.graph.nodes[1].args.pop_back();
  EXPECT_THAT(kinds(drawn.graph), IsEmpty());
  drawn.graph.nodes[1].op = "aten::neg";
  drawn.graph.nodes[2].args[1] = axes({0});
  EXPECT_THAT(kinds(drawn.graph), IsEmpty());
}

TEST(Shortcuts, DifferenceFromAMeanOfOneElementIsZero) {
  Drawn drawn;
  int x = drawn.input({128, 1});
  int mean = drawn.node("mean", {ref(x), axes({1}), {true}}, {128, 1});
  int zero = drawn.node("sub", {ref(x), ref(mean)}, {128, 1});
  drawn.returns(drawn.node("gelu", {ref(zero)}, {128, 1}));
  auto found = find_shortcuts(GraphUses(drawn.graph));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].kind, ShortcutKind::constant);
  EXPECT_TRUE(found[1].whole_output);
}

TEST(Shortcuts, ClampOfANegativeIsConstant) {
  Drawn drawn;
  int x = drawn.input({64});
  int low = drawn.node("clamp_max", {ref(x), number(0)}, {64});
  int zero = drawn.node("clamp", {ref(low), number(0), number(1)}, {64});
  drawn.returns(drawn.node("mul", {ref(zero), number(3)}, {64}));
  EXPECT_THAT(kinds(drawn.graph), ElementsAre("constant"));
  // Written in place in between, the range is another.
  Drawn other;
  x = other.input({64});
  low = other.node("clamp_max", {ref(x), number(0)}, {64});
  other.node("add_", {ref(low), number(2)}, {64});
  other.returns(other.node("clamp", {ref(low), number(0), number(1)}, {64}));
  EXPECT_THAT(kinds(other.graph), IsEmpty());
}

TEST(Shortcuts, NormTakesOutBiasAndScale) {
  Drawn drawn;
  int x = drawn.input({8, 4, 16, 16}), w = drawn.weight({6, 4, 3, 3}), b = drawn.weight({6});
  int y = drawn.node("conv2d", {ref(x), ref(w), ref(b)}, {8, 6, 14, 14});
  int scaled = drawn.node("mul", {ref(y), number(2)}, {8, 6, 14, 14});
  std::vector<GraphArgument> norm = {ref(scaled), {}, {}, {}, {}, {true}};
  drawn.returns(drawn.node("batch_norm", norm, {8, 6, 14, 14}));
  EXPECT_THAT(kinds(drawn.graph), ElementsAre("norm_cancels", "norm_cancels"));
  drawn.graph.nodes[2].args[5] = {false};  // in evaluation mode statistics are numbers
  EXPECT_THAT(kinds(drawn.graph), IsEmpty());
}

Reference reference_of(Drawn drawn) {
  Reference reference;
  reference.forward = std::move(drawn.graph);
  return reference;
}

TEST(Preflight, TellsWhatNothingDependsOn) {
  Drawn drawn;
  int x = drawn.input({64});
  drawn.input({32});
  drawn.returns(drawn.node("dropout", {ref(x), number(0.2), {true}}, {64}));
  auto found = preflight(reference_of(drawn), rates_of_gpu("sm_90a", "model"), true);
  EXPECT_THAT(found.unused, ElementsAre("v1"));
  EXPECT_TRUE(found.random);
  EXPECT_EQ(to_json(found).at("eager_launches"), 1);
}

TEST(Preflight, KnowsTiedWeightsByTheOneThatIsUsed) {
  Drawn drawn;
  int x = drawn.input({8, 64}), w = drawn.weight({64, 64}), again = drawn.weight({64, 64});
  drawn.weight({64});
  drawn.returns(drawn.node("linear", {ref(x), ref(w)}, {8, 64}));
  Reference reference = reference_of(drawn);
  reference.parameters = {{"a.weight", w, "a.weight"}, {"b.weight", again, "a.weight"}};
  EXPECT_THAT(preflight(reference, rates_of_gpu("sm_90a", "model"), true).unused, ElementsAre("v3"));
}

// Of a table no more need be read than what comes out of it.
TEST(Cost, OfAnEmbeddingBagIsNotThatOfTheTable) {
  Drawn drawn;
  int bags = drawn.input({16}, "int64"), offsets = drawn.input({4}, "int64"), table = drawn.weight({1'000'000, 64});
  auto made = drawn.node_of("embedding_bag", {ref(table), ref(bags), ref(offsets)}, {{4, 64}, {16}, {4}, {4}});
  drawn.returns(made[0]);
  EXPECT_LT(cost_of(GraphUses(drawn.graph)).least_bytes, 10'000);
}

TEST(Cost, OfAGatherIsWhatItPicks) {
  Drawn drawn;
  int table = drawn.input({1000, 512}), indices = drawn.input({1000, 1}, "int64");
  drawn.returns(drawn.node("gather", {ref(table), number(1), ref(indices)}, {1000, 1}));
  const GraphUses uses(drawn.graph);
  const NodeCost cost = cost_of(uses, drawn.graph.nodes[0]);
  EXPECT_EQ(cost.bytes, 1000 * (4 + 8 + 4));
  EXPECT_EQ(cost.other_flops, 0);
}

// A view where strides can show it, also of what does not lie in order.
TEST(Cost, OfAReshapeIsNoneWhereItIsAView) {
  auto bytes_of_reshape = [](std::vector<int64_t> shape, std::vector<int64_t> strides, std::vector<int64_t> to) {
    Drawn drawn;
    int x = drawn.input({1 << 20}), made = drawn.node("relu", {ref(x)}, shape);
    drawn.graph.values[static_cast<size_t>(made)].strides = std::move(strides);
    drawn.returns(drawn.node("reshape", {ref(made)}, to));
    const GraphUses uses(drawn.graph);
    return cost_of(uses, drawn.graph.nodes[1]).bytes;
  };
  EXPECT_EQ(bytes_of_reshape({2, 64, 32}, {2048, 32, 1}, {2, 2048}), 0);
  EXPECT_EQ(bytes_of_reshape({2, 64, 32}, {2048, 1, 64}, {2, 64, 4, 8}), 0);  // one axis becomes two
  EXPECT_EQ(bytes_of_reshape({2, 1, 64, 32}, {2048, 7, 1, 64}, {2, 64, 32}), 0);
  EXPECT_GT(bytes_of_reshape({2, 64, 32}, {2048, 1, 64}, {2, 2048}), 0);  // the two lie the other way round
  EXPECT_GT(bytes_of_reshape({64, 30}, {32, 1}, {1920}), 0);              // there are gaps
}

TEST(LeastTime, IsOfMemoryUnlessThereIsOneProductAlone) {
  auto least = [](int products) {
    Drawn drawn;
    int x = drawn.input({4096, 4096});
    for (int i = 0; i < products; ++i)
      x = drawn.node("matmul", {ref(x), ref(drawn.weight({4096, 4096}))}, {4096, 4096});
    drawn.returns(x);
    return preflight(reference_of(drawn), rates_of_gpu("sm_90a", "model"), true);
  };
  const auto one = least(1), two = least(2);
  EXPECT_EQ(one.bound.s, one.least.compute_s);
  EXPECT_NE(one.bound.words.find("the only product"), std::string::npos);
  // In another order there may be fewer operations; what goes between the two is not in the bytes.
  EXPECT_EQ(two.bound.s, two.least.memory_s);
  EXPECT_NE(two.bound.words.find("writing the outputs once, 268 MB"), std::string::npos) << two.bound.words;
}

TEST(Cost, OfACellIsThatOfItsProducts) {
  Drawn drawn;
  int x = drawn.input({8, 32}), h = drawn.input({8, 64}), c = drawn.input({8, 64});
  int input = drawn.weight({256, 32}), hidden = drawn.weight({256, 64});
  drawn.returns_all(drawn.node_of("lstm_cell", {ref(x), refs({h, c}), ref(input), ref(hidden)}, {{8, 64}, {8, 64}}));
  EXPECT_EQ(cost_of(GraphUses(drawn.graph)).product_flops, 2.0 * 8 * 256 * (32 + 64));
}

TEST(Memory, IsToldInNumbers) {
  Drawn drawn;
  int x = drawn.input({1 << 28});
  drawn.returns(drawn.node("relu", {ref(x)}, {1 << 28}));
  auto need = memory_need(GraphUses(drawn.graph), false);
  EXPECT_GT(need.host, int64_t{3} << 30);
  EXPECT_EQ(need.gpu, 0);
  EXPECT_TRUE(check_memory(need, {need.host, 0}).ok());
  auto status = check_memory(need, {int64_t{1} << 30, 0});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::out_of_memory);
  EXPECT_THAT(status.error().message, HasSubstr("GB of memory, 1.1 GB are free here"));
  auto gpu = memory_need(GraphUses(drawn.graph), true);
  EXPECT_THAT(check_memory(gpu, {gpu.host, 1 << 30}).error().message, HasSubstr("of the GPU's memory"));
  // A candidate may take more than it needs, not all that there is.
  EXPECT_EQ(need.gpu_limit, 0);
  EXPECT_GT(gpu.gpu_limit, (int64_t{4} << 30) + 2 * (gpu.inputs + gpu.outputs));
  EXPECT_LT(gpu.gpu_limit, (int64_t{4} << 30) + 8 * (gpu.inputs + gpu.outputs));
  EXPECT_GT(memory_available().host, 0);
  // Without a candidate, and of either kind of memory.
  const auto alone = reference_need(GraphUses(drawn.graph), true);
  EXPECT_LT(alone.gpu, gpu.gpu * 2 / 3);
  EXPECT_LT(alone.host, gpu.host);
  EXPECT_GT(alone.gpu, 6 * alone.inputs);  // inputs, eager's outputs, and two truths of twice their size
  // Each mode of `torch.compile` has a process with inputs and outputs of its own.
  EXPECT_GT(with_compiled_modes(need, false).host, need.host + 4 * need.inputs);
  EXPECT_GT(with_compiled_modes(gpu, true).gpu, gpu.gpu + 4 * gpu.inputs);
}

TEST(Roofline, IsExceededOnlyBeyondItsMargins) {
  Drawn drawn;
  int x = drawn.input({1 << 28});
  drawn.returns(drawn.node("relu", {ref(x)}, {1 << 28}));
  const auto cost = cost_of(GraphUses(drawn.graph));
  const auto rates = rates_of_gpu("sm_90a", "model");
  const double least = roofline(cost, 0, rates).least_s();
  EXPECT_NEAR(least, 2.0 * 4 * (1 << 28) / 4.8e12, 1e-9);
  EXPECT_FALSE(faster_than_possible(least, cost, 0, rates));
  auto finding = faster_than_possible(least / 2, cost, 0, rates);
  ASSERT_TRUE(finding);
  EXPECT_THAT(*finding, HasSubstr("takes to move"));
  // What the last cache holds needs no memory.
  auto cached = rates;
  cached.cache_bytes = int64_t{4} << 30;
  EXPECT_FALSE(faster_than_possible(1e-7, cost, 0, cached));
  EXPECT_FALSE(faster_than_possible(least, cost, least * rates.product_flops * 2, rates));
  EXPECT_THAT(*faster_than_possible(least, cost, least * rates.product_flops * 10, rates), HasSubstr("GFLOP"));
}

// The last row of a product needs little of what the whole product does: an honest program may leave the rest out.
TEST(Roofline, ExemptsWhatLeadsToAPart) {
  Drawn drawn;
  int x = drawn.input({1 << 20, 256}), w = drawn.weight({256, 256});
  int y = drawn.node("linear", {ref(x), ref(w)}, {1 << 20, 256});
  drawn.returns(drawn.node("select", {ref(y), {int64_t{0}}, {int64_t{5}}}, {256}));
  const auto cost = cost_of(GraphUses(drawn.graph));
  EXPECT_TRUE(cost.uses_parts);
  EXPECT_FALSE(faster_than_possible(1e-6, cost, cost.product_flops, rates_of_gpu("sm_90a", "model")));
  drawn.returns(y);
  const auto whole = cost_of(GraphUses(drawn.graph));
  EXPECT_FALSE(whole.uses_parts);
  EXPECT_TRUE(faster_than_possible(1e-6, whole, whole.product_flops, rates_of_gpu("sm_90a", "model")));
}

TEST(Roofline, SaysNothingOfUnknownDevices) {
  EXPECT_FALSE(rates_of_device("NVIDIA B200", "model"));
  EXPECT_EQ(rates_of_device("NVIDIA H100 80GB HBM3", "fp16")->product_flops, 989e12);
}

TEST(Roofline, MeasuresThisProcessorOnce) {
  auto folder = std::filesystem::path(::testing::TempDir()) / "rates";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  auto first = rates_of_processor(1, folder), second = rates_of_processor(1, folder);
  EXPECT_GT(first.bytes_per_s, 1e8);
  EXPECT_GT(first.product_flops, 1e9);
  EXPECT_EQ(first.bytes_per_s, second.bytes_per_s);
}

// The cache's file with another rate for each of its entries, measured so many seconds ago.
void set_known_rate(const std::filesystem::path& folder, double rate, int64_t age) {
  const auto file = folder / "processor.json";
  auto known = nlohmann::json::parse(std::ifstream(file));
  for (auto& [key, entry] : known.items()) {
    entry["bytes_per_s"] = rate;
    entry["measured_at"] = entry["measured_at"].get<int64_t>() - age;
  }
  std::ofstream(file) << known.dump();
}

TEST(Roofline, KeepsTheBestRateOfMemoryAndMeasuresAgainLater) {
  constexpr double kBelowAny = 1e3, kAboveAny = 1e15;
  constexpr int64_t kHour = 3600;
  const auto folder = std::filesystem::path(::testing::TempDir()) / "rates_again";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  rates_of_processor(1, folder);
  set_known_rate(folder, kBelowAny, 0);
  EXPECT_EQ(rates_of_processor(1, folder).bytes_per_s, kBelowAny) << "measured just now";
  set_known_rate(folder, kBelowAny, kHour);
  EXPECT_GT(rates_of_processor(1, folder).bytes_per_s, 1e8) << "a busy machine's rate does not stay";
  set_known_rate(folder, kAboveAny, kHour);
  EXPECT_EQ(rates_of_processor(1, folder).bytes_per_s, kAboveAny) << "nor does a worse one replace it";
  std::ofstream(folder / "processor.json") << R"({"another": 7, "form": "of the file"})";
  EXPECT_GT(rates_of_processor(1, folder).bytes_per_s, 1e8);
}

TEST(Roofline, TellsWhatProductsTake) {
  Drawn drawn;
  int x = drawn.input({128, 256}), w = drawn.weight({512, 256}), v = drawn.weight({4096, 512});
  int y = drawn.node("relu", {ref(drawn.node("linear", {ref(x), ref(w)}, {128, 512}))}, {128, 512});
  drawn.returns(drawn.node("linear", {ref(y), ref(v)}, {128, 4096}));
  const auto rates = rates_of_gpu("sm_90a", "model");
  const GraphUses uses(drawn.graph);
  const auto times = product_times(uses, rates);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times.at("aten::linear"), estimate_s(cost_of(uses, drawn.graph.nodes[2]), rates));
}

TEST(Roofline, CountsUnitsForHalvesOnlyWhereTheGraphHasHalves) {
  MachineRates rates;
  rates.product_flops = rates.other_flops = 1600e9;
  rates.vector_flops = 100e9;
  Graph graph;
  graph.values.push_back({.name = "x", .dtype = "float32", .shape = {4}, .strides = {1}});
  MachineRates single = rates;
  leave_out_units_for_halves(graph, single);
  EXPECT_EQ(single.product_flops, 100e9);
  graph.values.push_back({.name = "y", .dtype = "bfloat16", .shape = {4}, .strides = {1}});
  MachineRates half = rates;
  leave_out_units_for_halves(graph, half);
  EXPECT_EQ(half.product_flops, 1600e9);
  rates.vector_flops = 0;  // a GPU's
  leave_out_units_for_halves(Graph(), rates);
  EXPECT_EQ(rates.product_flops, 1600e9);
}

}  // namespace
}  // namespace tilepilot::eval
