// Replay against PyTorch eager, bit for bit: every model of examples/ and of tests/torch/models.
#include "eval/torch/replay.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using c10::IValue;
using testing::run_python;
using testing::scratch;

std::vector<std::string> model_files() {
  std::vector<std::string> files;
  for (auto folder : {"/examples", "/tests/torch/models"}) {
    for (auto& entry : std::filesystem::directory_iterator(std::string(TILEPILOT_SOURCE_DIR) + folder)) {
      if (entry.path().extension() == ".py") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Where the bits differ; empty if nowhere.
std::string difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.scalar_type() != expected.scalar_type() || actual.sizes() != expected.sizes())
    return "types or shapes differ";
  auto left = actual.contiguous().view({-1}), right = expected.contiguous().view({-1});
  const auto* a = static_cast<const char*>(left.const_data_ptr());
  const auto* b = static_cast<const char*>(right.const_data_ptr());
  const size_t size = left.element_size();
  std::vector<int64_t> apart;
  for (int64_t i = 0; i < left.numel(); ++i)
    if (std::memcmp(a + i * size, b + i * size, size) != 0) apart.push_back(i);
  if (apart.empty()) return "";
  auto values = [&](int64_t i) {
    return fmt::format("[{}]: {} and {}", i, left[i].item().toDouble(), right[i].item().toDouble());
  };
  return fmt::format("{} of {} elements differ, {} .. {}", apart.size(), left.numel(), values(apart.front()),
                     values(apart.back()));
}

// What one export replays, with everything it needs kept alive.
struct Loaded {
  Reference reference;
  TensorMap weights;
  State state, recipe_state;
};

Loaded load(const std::filesystem::path& folder) {
  auto reference = load_reference(folder);
  EXPECT_TRUE(reference.ok()) << reference.error().message;
  auto weights = load_safetensors(reference->weights);
  EXPECT_TRUE(weights.ok()) << weights.error().message;
  Loaded loaded{*std::move(reference), *std::move(weights), {}, {}};
  loaded.state = *make_state(loaded.reference.forward, loaded.reference, loaded.weights);
  loaded.recipe_state = *make_state(loaded.reference.inputs, loaded.reference, loaded.weights);
  return loaded;
}

// A model and what it is converted to.
using ModelAndType = std::pair<std::string, std::string>;
// Python starts once for several models: that takes longer than most of them.
class ReplayEqualsEager : public ::testing::TestWithParam<std::vector<ModelAndType>> {};

void expect_call_equal(int call, const Replay& replay, const std::vector<IValue>& inputs, const Loaded& loaded,
                       const TensorMap& eager) {
  at::manual_seed(static_cast<uint64_t>(2 + call));
  auto outputs = replay.run(inputs, loaded.state);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_FALSE(outputs->empty());
  for (size_t i = 0; i < outputs->size(); ++i) {
    auto& expected = eager.at(fmt::format("output{}.{}", call, i));
    EXPECT_EQ(difference((*outputs)[i], expected), "") << "output " << i << " of call " << call;
  }
}

void expect_replay_equals_eager(const std::filesystem::path& folder) {
  auto eager = load_safetensors(folder / "eager.safetensors");
  ASSERT_TRUE(eager.ok()) << eager.error().message;
  Loaded loaded = load(folder / "reference");
  auto inputs = make_inputs(loaded.reference, loaded.recipe_state, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  std::vector<at::Tensor> tensors;
  for (auto& leaf : *inputs) {
    if (leaf.isTensor()) tensors.push_back(leaf.toTensor());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(difference(tensors[i], eager->at(fmt::format("input{}", i))), "") << "input " << i;
  }
  auto replay = Replay::prepare(loaded.reference.forward);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  for (int call = 0; call < 2; ++call) expect_call_equal(call, *replay, *inputs, loaded, *eager);
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(difference(tensors[i], eager->at(fmt::format("after{}", i))), "") << "input " << i << " after the calls";
  }
  for (auto& parameter : loaded.reference.parameters) {
    if (parameter.value < 0) continue;
    const at::Tensor& value = loaded.state[static_cast<size_t>(parameter.value)];
    EXPECT_EQ(difference(value, eager->at("state." + parameter.name)), "") << parameter.name;
  }
}

TEST_P(ReplayEqualsEager, BitForBit) {
  const auto folder = scratch("eager");
  std::vector<std::string> arguments = {std::string(TILEPILOT_SOURCE_DIR) + "/scripts/export_reference.py", "1", "2"};
  for (auto& [model, dtype] : GetParam()) {
    const auto out = folder / std::to_string(arguments.size());
    arguments.insert(arguments.end(), {model, dtype, out.string()});
  }
  auto run = run_python("tests/torch/dump_eager.py", arguments);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  at::set_num_threads(2);
  size_t next = 3;
  for (auto& [model, dtype] : GetParam()) {
    SCOPED_TRACE(model + " as " + dtype);
    expect_replay_equals_eager(folder / std::to_string(next));
    next += 3;
  }
}

std::vector<std::vector<ModelAndType>> groups_of_models() {
  constexpr size_t kGroups = 3;
  std::vector<ModelAndType> pairs;
  for (auto& model : model_files()) pairs.emplace_back(model, "model");
  for (auto dtype : {"fp16", "bf16"}) {
    pairs.emplace_back(std::string(TILEPILOT_SOURCE_DIR) + "/tests/torch/models/upcast_norm.py", dtype);
    pairs.emplace_back(std::string(TILEPILOT_SOURCE_DIR) + "/tests/torch/models/scale_rows.py", dtype);
  }
  std::vector<std::vector<ModelAndType>> groups(kGroups);
  for (size_t k = 0; k < pairs.size(); ++k) groups[k % kGroups].push_back(pairs[k]);
  return groups;
}

INSTANTIATE_TEST_SUITE_P(Models, ReplayEqualsEager, ::testing::ValuesIn(groups_of_models()));

// An operator without a form for float16 on the CPU.
TEST(Replay, ComputesInFloat32WhatDoesNotExistIn16Bit) {
  for (auto dtype : {"fp16", "bf16"}) {
    auto type = std::string(dtype) == "fp16" ? at::kHalf : at::kBFloat16;
    Loaded loaded = load(testing::exported("tests/torch/models/pooled_volume.py", dtype));
    auto inputs = make_inputs(loaded.reference, loaded.recipe_state, 1);
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    auto replay = Replay::prepare(loaded.reference.forward);
    ASSERT_TRUE(replay.ok()) << replay.error().message;
    auto input = (*inputs)[0].toTensor();
    ASSERT_EQ(input.scalar_type(), type);
    at::Tensor expected = at::relu(at::avg_pool3d(input.to(at::kFloat), 2)).to(type);
    for (int call = 0; call < 2; ++call) {
      auto outputs = replay->run(*inputs, loaded.state);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      EXPECT_EQ(difference((*outputs)[0], expected), "");
    }
    EXPECT_THAT(replay->widened(), ::testing::ElementsAre(::testing::HasSubstr("aten::avg_pool3d")));
  }
}

double worst_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
}

// The float64 run draws the same random numbers as the float32 one: they differ by rounding only.
TEST(ExactReplay, SeesTheSameRandomNumbers) {
  Loaded loaded = load(testing::exported("tests/torch/models/train_mode.py"));
  auto inputs = make_inputs(loaded.reference, loaded.recipe_state, 5);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  State exact_state = copy_state(loaded.state, true);
  std::vector<IValue> exact_inputs;
  for (auto& leaf : *inputs) {
    bool floating = leaf.isTensor() && leaf.toTensor().is_floating_point();
    exact_inputs.push_back(floating ? IValue(leaf.toTensor().to(at::kDouble)) : leaf);
  }
  auto plain = Replay::prepare(loaded.reference.forward);
  auto exact = Replay::prepare(loaded.reference.forward, Precision::exact);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  at::manual_seed(9);
  auto outputs = plain->run(*inputs, loaded.state);
  at::manual_seed(9);
  auto truth = exact->run(exact_inputs, exact_state);
  ASSERT_TRUE(truth.ok()) << truth.error().message;
  EXPECT_EQ((*truth)[0].scalar_type(), at::kDouble);
  EXPECT_EQ(c10::get_default_dtype(), caffe2::TypeMeta::Make<float>());
  EXPECT_GT(worst_difference((*outputs)[0], (*truth)[0]), 0);
  EXPECT_LT(worst_difference((*outputs)[0], (*truth)[0]), 1e-4);
}

TEST(Replay, FreshSeedsMakeFreshInputs) {
  Loaded loaded = load(testing::exported("examples/softmax_rows.py"));
  auto one = make_inputs(loaded.reference, loaded.recipe_state, 1);
  auto two = make_inputs(loaded.reference, loaded.recipe_state, 2);
  EXPECT_FALSE(at::equal((*one)[0].toTensor(), (*two)[0].toTensor()));
}

// An operator may lay out its result otherwise than at the export: on a GPU attention does. `contiguous` before a
// `view` must then copy, although it did nothing when the model was traced.
TEST(Replay, KeepsContiguousThatDidNothingAtTheExport) {
  Loaded loaded = load(testing::exported("tests/torch/models/contiguous_view.py"));
  auto replay = Replay::prepare(loaded.reference.forward);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  at::Tensor turned = at::rand({6, 4}).t();  // the shape of the input, with other strides
  auto outputs = replay->run({turned}, loaded.state);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(difference((*outputs)[0], turned.reshape({-1})), "");
}

TEST(Replay, fail_OperatorThatDoesNotExist) {
  Graph graph;
  graph.values.push_back({GraphValue::Kind::node, "x", true, "float32", {}, {}});
  graph.nodes.push_back({"aten::no_such_operator", "", {}, {}, {0}, "", 7});
  auto replay = Replay::prepare(graph);
  ASSERT_FALSE(replay.ok());
  EXPECT_THAT(replay.error().message, ::testing::HasSubstr("`aten::no_such_operator` (line 7 of the model)"));
}

}  // namespace
}  // namespace tilepilot::eval
