// A run in slices gives what the run of the whole graph gives: each row of eval/graph/axis_rules.cpp is in some graph.
#include "eval/torch/sliced_replay.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "eval/torch/element_type.h"
#include "tests/eval/drawn_graph.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using c10::IValue;
using testing::axes;
using testing::Drawn;
using testing::integer;
using testing::number;
using testing::ref;
using testing::refs;

using Shape = std::vector<int64_t>;

at::Tensor filled_like(const GraphValue& value) {
  if (value.dtype == "bool") return at::rand(value.shape).gt(0.4);
  if (value.dtype == "int64") return at::randint(4, value.shape, at::kLong);
  return at::randn(value.shape);
}

// Inputs and state with random values; positive where they are weights, as some are variances.
struct Filled {
  std::vector<IValue> inputs;
  State state;  // in float64

  explicit Filled(const Graph& graph) : state(graph.values.size()) {
    at::manual_seed(3);
    for (int id : graph.inputs) inputs.emplace_back(filled_like(graph.values[static_cast<size_t>(id)]));
    for (size_t id = 0; id < graph.values.size(); ++id) {
      auto kind = graph.values[id].kind;
      if (kind == GraphValue::Kind::node || kind == GraphValue::Kind::input) continue;
      state[id] = filled_like(graph.values[id]).abs().add(0.1).to(at::kDouble);
    }
  }
};

at::Tensor widened(const at::Tensor& part) {
  return part.to(part.is_floating_point() ? at::kDouble : part.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

SlicedReplay::Hooks plain_hooks() {
  return {[](const at::Tensor& part, size_t, int64_t) { return widened(part); }};
}

void expect_close(const std::vector<at::Tensor>& sliced, const std::vector<at::Tensor>& whole) {
  ASSERT_EQ(sliced.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(sliced[i].sizes(), whole[i].sizes());
    EXPECT_EQ(sliced[i].scalar_type(), whole[i].scalar_type());
    EXPECT_TRUE(sliced[i].allclose(whole[i], 1e-12, 1e-12, /*equal_nan=*/true)) << "output " << i;
  }
}

// With slices of several lengths, the last one shorter.
void expect_slices_equal_whole(const Graph& graph, const std::vector<IValue>& inputs, const State& state) {
  auto slices = find_slices(GraphUses(graph));
  ASSERT_TRUE(slices) << "no plan";
  std::vector<IValue> leaves;
  for (auto& input : inputs) leaves.push_back(input.isTensor() ? IValue(widened(input.toTensor())) : input);
  auto replay = Replay::prepare(graph, Precision::exact);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  auto whole = replay->run(leaves, copy_state(state, true));
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  const auto hooks = plain_hooks();
  for (int64_t parts : {int64_t{1}, int64_t{2}, (slices->extent + 1) / 2, slices->extent - 1}) {
    SCOPED_TRACE(parts);
    ExactRun run;
    run.slices = slices;
    run.parts = std::max<int64_t>(1, parts);
    auto sliced = SlicedReplay::prepare(graph, run, c10::DeviceType::CPU);
    ASSERT_TRUE(sliced.ok()) << sliced.error().message;
    auto outputs = sliced->run({inputs, state, hooks});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    expect_close(*outputs, *whole);
  }
}

void expect_slices_equal_whole(const Drawn& drawn) {
  const Filled filled(drawn.graph);
  expect_slices_equal_whole(drawn.graph, filled.inputs, filled.state);
}

TEST(SlicedReplay, ElementByElement) {
  constexpr const char* kFunctions[] = {
      "abs",         "neg",        "exp",        "exp2",       "expm1",      "square", "sign",      "floor",
      "ceil",        "round",      "trunc",      "frac",       "sin",        "cos",    "tan",       "atan",
      "sinh",        "cosh",       "tanh",       "asinh",      "erf",        "erfc",   "sigmoid",   "relu",
      "relu6",       "gelu",       "silu",       "mish",       "hardswish",  "selu",   "elu",       "celu",
      "hardsigmoid", "softplus",   "leaky_relu", "hardtanh",   "clone",      "detach", "alias",     "isnan",
      "log_sigmoid", "zeros_like", "ones_like",  "contiguous", "nan_to_num", "logit",  "reciprocal"};
  Drawn drawn;
  const int x = drawn.input({7, 5});
  std::vector<int> made;
  for (auto* function : kFunctions) made.push_back(drawn.node(function, {ref(x)}, {7, 5}));
  expect_slices_equal_whole(drawn.returns_all(made));
}

TEST(SlicedReplay, Broadcasting) {
  Drawn drawn;
  const Shape all = {4, 6, 5};
  const int x = drawn.input(all), mask = drawn.input({4, 1, 5}, "bool"), w = drawn.weight({5}), c = drawn.weight({});
  int y = drawn.node("mul.Tensor", {ref(x), ref(w)}, all);
  y = drawn.node("add.Tensor", {ref(y), ref(c)}, all);
  y = drawn.node("masked_fill.Scalar", {ref(y), ref(mask), number(-3)}, all);
  y = drawn.node("where.self", {ref(mask), ref(y), ref(x)}, all);
  y = drawn.node("maximum", {ref(y), ref(w)}, all);
  y = drawn.node("lerp.Scalar", {ref(y), ref(x), number(0.3)}, all);
  y = drawn.node("addcmul", {ref(y), ref(x), ref(w)}, all);
  y = drawn.node("clamp", {ref(y), number(-2), number(2)}, all);
  y = drawn.node("div_.Tensor", {ref(y), ref(w)}, all);
  y = drawn.node("pow.Tensor_Scalar", {ref(y), number(2)}, all);
  const int big = drawn.node("gt.Scalar", {ref(y), number(0.5)}, all);
  drawn.graph.values[static_cast<size_t>(big)].dtype = "bool";
  expect_slices_equal_whole(drawn.returns_all({y, big}));
}

TEST(SlicedReplay, AlongOtherAxes) {
  Drawn drawn;
  const Shape all = {5, 4, 6};
  const int x = drawn.input(all);
  std::vector<int> made;
  for (auto* op : {"softmax.int", "log_softmax.int", "cumsum", "cumprod", "logcumsumexp", "argsort"})
    made.push_back(drawn.node(op, {ref(x), integer(-1)}, all));
  for (auto* op : {"sum.dim_IntList", "mean.dim", "amax", "amin", "logsumexp"}) {
    made.push_back(drawn.node(op, {ref(x), axes({1})}, {5, 6}));
    made.push_back(drawn.node(op, {ref(x), axes({-1, 1}), {true}}, {5, 1, 1}));
  }
  for (auto* op : {"var.dim", "std.dim"}) made.push_back(drawn.node(op, {ref(x), axes({2}), {true}, {false}}, {5, 4}));
  for (auto* op : {"prod.dim_int", "argmax", "argmin"})
    made.push_back(drawn.node(op, {ref(x), integer(1), {true}}, {5, 1, 6}));
  made.push_back(drawn.node("linalg_vector_norm", {ref(x), number(2), axes({2}), {true}}, {5, 4, 1}));
  made.push_back(drawn.node("norm.ScalarOpt_dim", {ref(x), number(1), axes({1})}, {5, 6}));
  for (int id : drawn.node_of("max.dim", {ref(x), integer(2)}, {{5, 4}, {5, 4}})) made.push_back(id);
  for (int id : drawn.node_of("sort", {ref(x), integer(1)}, {all, all})) made.push_back(id);
  for (int id : drawn.node_of("cummax", {ref(x), integer(1)}, {all, all})) made.push_back(id);
  for (int id : drawn.node_of("topk", {ref(x), integer(2), integer(-1)}, {{5, 4, 2}, {5, 4, 2}})) made.push_back(id);
  made.push_back(drawn.node("flip", {ref(x), axes({1, 2})}, all));
  made.push_back(drawn.node("tril", {ref(x)}, all));
  made.push_back(drawn.node("triu", {ref(x), integer(1)}, all));
  made.push_back(drawn.node("glu", {ref(x), integer(1)}, {5, 2, 6}));
  expect_slices_equal_whole(drawn.returns_all(made));
}

TEST(SlicedReplay, Products) {
  Drawn rows;
  int x = rows.input({9, 6}), w = rows.weight({6, 4}), v = rows.weight({6}), l = rows.weight({4, 6}),
      b = rows.weight({4});
  expect_slices_equal_whole(rows.returns_all(
      {rows.node("matmul", {ref(x), ref(w)}, {9, 4}), rows.node("mm", {ref(x), ref(w)}, {9, 4}),
       rows.node("mv", {ref(x), ref(v)}, {9}), rows.node("matmul", {ref(x), ref(v)}, {9}),
       rows.node("linear", {ref(x), ref(l), ref(b)}, {9, 4}), rows.node("addmm", {ref(b), ref(x), ref(w)}, {9, 4}),
       rows.node("einsum", {{std::string("ij,jk->ki")}, refs({x, w})}, {4, 9})}));
  Drawn columns;
  const int a = columns.input({3, 5}), c = columns.input({5, 16});
  expect_slices_equal_whole(columns.returns(columns.node("matmul", {ref(a), ref(c)}, {3, 16})));
  Drawn batches;
  const int p = batches.input({4, 7, 5}), q = batches.input({4, 5, 6}), r = batches.weight({5, 6}),
            s = batches.weight({6});
  expect_slices_equal_whole(batches.returns_all({batches.node("bmm", {ref(p), ref(q)}, {4, 7, 6}),
                                                 batches.node("matmul", {ref(p), ref(r)}, {4, 7, 6}),
                                                 batches.node("baddbmm", {ref(s), ref(p), ref(q)}, {4, 7, 6})}));
}

TEST(SlicedReplay, AttentionWithHeads) {
  Drawn drawn;
  const int x = drawn.input({4, 6, 8}), w = drawn.weight({24, 8}), mask = drawn.input({4, 1, 6, 6});
  const int all = drawn.node("linear", {ref(x), ref(w)}, {4, 6, 24});
  std::vector<int> heads;
  for (int part :
       drawn.node_of("split.Tensor", {ref(all), integer(8), integer(2)}, {{4, 6, 8}, {4, 6, 8}, {4, 6, 8}})) {
    const int apart = drawn.node("view", {ref(part), axes({4, 6, 2, 4})}, {4, 6, 2, 4});
    heads.push_back(drawn.node("transpose.int", {ref(apart), integer(1), integer(2)}, {4, 2, 6, 4}));
  }
  int y = drawn.node("scaled_dot_product_attention", {ref(heads[0]), ref(heads[1]), ref(heads[2]), ref(mask)},
                     {4, 2, 6, 4});
  y = drawn.node("transpose.int", {ref(y), integer(1), integer(2)}, {4, 6, 2, 4});
  y = drawn.node("contiguous", {ref(y)}, {4, 6, 2, 4});
  y = drawn.node("view", {ref(y), axes({24, 8})}, {24, 8});
  y = drawn.node("layer_norm", {ref(y), axes({8})}, {24, 8});
  expect_slices_equal_whole(drawn.returns(drawn.node("reshape", {ref(y), axes({4, -1})}, {4, 48})));
}

TEST(SlicedReplay, ConvolutionsNormsAndPooling) {
  Drawn drawn;
  int x = drawn.input({5, 4, 8, 8}), w = drawn.weight({6, 4, 3, 3}), b = drawn.weight({6}), c = drawn.weight({6});
  int y = drawn.node("pad", {ref(x), axes({1, 1, 1, 1}), {std::string("reflect")}}, {5, 4, 10, 10});
  y = drawn.node("conv2d", {ref(y), ref(w), ref(b)}, {5, 6, 8, 8});
  y = drawn.node("batch_norm", {ref(y), ref(b), ref(c), ref(c), ref(b), {false}, number(0.1), number(1e-5), {false}},
                 {5, 6, 8, 8});
  y = drawn.node("group_norm", {ref(y), integer(3), ref(b), ref(c)}, {5, 6, 8, 8});
  y = drawn.node("instance_norm", {ref(y), {}, {}, {}, {}, {true}, number(0.1), number(1e-5), {false}}, {5, 6, 8, 8});
  y = drawn.node("prelu", {ref(y), ref(c)}, {5, 6, 8, 8});
  y = drawn.node("max_pool2d", {ref(y), axes({2, 2})}, {5, 6, 4, 4});
  const int back = drawn.node("conv_transpose2d.input", {ref(y), ref(w), {}, axes({2, 2})}, {5, 4, 9, 9});
  const int mean = drawn.node("adaptive_avg_pool2d", {ref(y), axes({1, 1})}, {5, 6, 1, 1});
  const int flat = drawn.node("flatten.using_ints", {ref(mean), integer(1)}, {5, 6});
  const int less = drawn.node("squeeze.dims", {ref(mean), axes({2, 3})}, {5, 6});
  const int large = drawn.node("upsample_nearest2d", {ref(y), axes({8, 8})}, {5, 6, 8, 8});
  const int zeros = drawn.node("constant_pad_nd", {ref(large), axes({1, 0}), number(2)}, {5, 6, 8, 9});
  const int average = drawn.node("avg_pool2d", {ref(large), axes({2, 2})}, {5, 6, 4, 4});
  expect_slices_equal_whole(drawn.returns_all({back, flat, less, zeros, average}));
}

TEST(SlicedReplay, AxesThatMove) {
  Drawn drawn;
  const int x = drawn.input({6, 4, 5});
  const int p = drawn.node("permute", {ref(x), axes({2, 0, 1})}, {5, 6, 4});
  const int u = drawn.node("unsqueeze", {ref(p), integer(-1)}, {5, 6, 4, 1});
  const int e = drawn.node("expand", {ref(u), axes({-1, 6, 4, 3})}, {5, 6, 4, 3});
  const int s = drawn.node("select.int", {ref(e), integer(0), integer(-2)}, {6, 4, 3});
  const int all = drawn.node("slice.Tensor", {ref(s), integer(0), integer(0), integer(INT64_MAX)}, {6, 4, 3});
  const int n = drawn.node("slice.Tensor", {ref(all), integer(1), integer(1), integer(3)}, {6, 2, 3});
  std::vector<int> made = drawn.node_of("unbind.int", {ref(n), integer(1)}, {{6, 3}, {6, 3}});
  for (int id : drawn.node_of("chunk", {ref(n), integer(2), integer(1)}, {{6, 1, 3}, {6, 1, 3}})) made.push_back(id);
  made.push_back(drawn.node("cat", {refs({made[0], made[1]}), integer(-1)}, {6, 6}));
  made.push_back(drawn.node("stack", {refs({made[0], made[1]})}, {2, 6, 3}));
  made.push_back(drawn.node("t", {ref(made[0])}, {3, 6}));
  made.push_back(drawn.node("narrow", {ref(p), integer(2), integer(1), integer(2)}, {5, 6, 2}));
  made.push_back(drawn.node("view", {ref(x), axes({24, 5})}, {24, 5}));
  const int state = drawn.node("zeros", {axes({24, 5})}, {24, 5});
  made.push_back(drawn.node("add.Tensor", {ref(state), ref(made.back())}, {24, 5}));
  expect_slices_equal_whole(drawn.returns_all(made));
}

TEST(SlicedReplay, Selections) {
  Drawn drawn;
  const int index = drawn.input({6, 5}, "int64"), table = drawn.weight({4, 3});
  const int few = drawn.value(GraphValue::Kind::constant, {2}, "int64");
  const int rows = drawn.node("embedding", {ref(table), ref(index)}, {6, 5, 3});
  const int some = drawn.node("index_select", {ref(rows), integer(2), ref(few)}, {6, 5, 2});
  const int sum = drawn.node("sum.dim_IntList", {ref(some), axes({2})}, {6, 5});
  const int gathered = drawn.node("gather", {ref(sum), integer(1), ref(index)}, {6, 5});
  Filled filled(drawn.graph);
  filled.state[static_cast<size_t>(few)] = at::arange(2, at::kLong);
  expect_slices_equal_whole(drawn.returns_all({rows, gathered}).graph, filled.inputs, filled.state);
}

TEST(SlicedReplay, PairsAndOtherFunctions) {
  Drawn drawn;
  const Shape all = {7, 5};
  const int given = drawn.input(all), row = drawn.weight({5});
  const int x = drawn.node("sigmoid", {ref(given)}, all);
  std::vector<int> made;
  for (auto* op : {"sub.Tensor",       "rsub.Tensor", "minimum",           "fmod.Tensor",
                   "remainder.Tensor", "atan2",       "floor_divide",      "true_divide.Tensor",
                   "copysign.Tensor",  "hypot",       "eq.Tensor",         "ne.Tensor",
                   "lt.Tensor",        "le.Tensor",   "ge.Tensor",         "logical_and",
                   "logical_or",       "logical_xor", "pow.Tensor_Tensor", "type_as",
                   "expand_as"})
    made.push_back(drawn.node(
        op, {ref(op == std::string("expand_as") ? row : x), ref(op == std::string("expand_as") ? x : row)}, all));
  for (auto* op : {"asin", "acos", "atanh", "erfinv", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "isinf",
                   "isfinite", "logical_not", "hardshrink", "softshrink", "lift_fresh_copy"})
    made.push_back(drawn.node(op, {ref(x)}, all));
  for (auto* op : {"clamp_min", "clamp_max", "full_like"}) made.push_back(drawn.node(op, {ref(x), number(0.5)}, all));
  made.push_back(drawn.node("threshold", {ref(x), number(0.5), number(2)}, all));
  made.push_back(drawn.node("addcdiv", {ref(x), ref(row), ref(row)}, all));
  made.push_back(drawn.node("_softmax", {ref(x), integer(1), {false}}, all));
  made.push_back(drawn.node("rms_norm", {ref(x), axes({5}), ref(row)}, all));
  made.push_back(drawn.node("any.dim", {ref(x), integer(1)}, {7}));
  made.push_back(drawn.node("all.dim", {ref(x), integer(1), {true}}, {7, 1}));
  made.push_back(drawn.node("count_nonzero.dim_IntList", {ref(x), axes({1})}, {7}));
  for (int id : drawn.node_of("min.dim", {ref(x), integer(-1)}, {{7}, {7}})) made.push_back(id);
  for (int id : drawn.node_of("split_with_sizes", {ref(x), axes({2, 3}), integer(1)}, {{7, 2}, {7, 3}}))
    made.push_back(id);
  const int full = drawn.node("full", {axes({7, 5}), number(2)}, all), places = drawn.node("arange", {integer(5)}, {5});
  made.push_back(drawn.node("add.Tensor", {ref(full), ref(x)}, all));
  made.push_back(drawn.node("mul.Tensor", {ref(places), ref(x)}, all));
  expect_slices_equal_whole(drawn.returns_all(made));
}

TEST(SlicedReplay, OneAndThreeSpatialAxes) {
  Drawn line;
  int x = line.input({5, 4, 12}), w = line.weight({4, 4, 3});
  int y = line.node("conv1d", {ref(x), ref(w)}, {5, 4, 10});
  const int back = line.node("conv_transpose1d", {ref(y), ref(w)}, {5, 4, 12});
  expect_slices_equal_whole(line.returns_all({back, line.node("max_pool1d", {ref(y), axes({2})}, {5, 4, 5}),
                                              line.node("avg_pool1d", {ref(y), axes({2})}, {5, 4, 5}),
                                              line.node("adaptive_avg_pool1d", {ref(y), axes({1})}, {5, 4, 1})}));
  Drawn volume;
  x = volume.input({5, 4, 4, 4, 4});
  w = volume.weight({4, 4, 3, 3, 3});
  y = volume.node("conv3d", {ref(x), ref(w), {}, axes({1}), axes({1})}, {5, 4, 4, 4, 4});
  expect_slices_equal_whole(
      volume.returns_all({volume.node("max_pool3d", {ref(y), axes({2})}, {5, 4, 2, 2, 2}),
                          volume.node("avg_pool3d", {ref(y), axes({2})}, {5, 4, 2, 2, 2}),
                          volume.node("adaptive_avg_pool3d", {ref(y), axes({1, 1, 1})}, {5, 4, 1, 1, 1}),
                          volume.node("upsample_nearest3d", {ref(y), axes({8, 8, 8})}, {5, 4, 8, 8, 8})}));
  Drawn plane;
  x = plane.input({5, 4, 4, 4});
  expect_slices_equal_whole(
      plane.returns_all({plane.node("pixel_shuffle", {ref(x), integer(2)}, {5, 1, 8, 8}),
                         plane.node("pixel_unshuffle", {ref(x), integer(2)}, {5, 16, 2, 2}),
                         plane.node("upsample_bilinear2d", {ref(x), axes({8, 8}), {false}}, {5, 4, 8, 8}),
                         plane.node("upsample_bicubic2d", {ref(x), axes({8, 8}), {true}}, {5, 4, 8, 8})}));
}

TEST(SlicedReplay, ExportedModels) {
  for (std::string model :
       {"examples/attention_head.py", "examples/transformer_block.py", "tests/torch/models/masked_rows.py"}) {
    SCOPED_TRACE(model);
    auto reference = load_reference(testing::exported(model));
    ASSERT_TRUE(reference.ok());
    auto weights = load_safetensors(reference->weights);
    ASSERT_TRUE(weights.ok());
    const State state = copy_state(*make_state(reference->forward, *reference, *weights), true);
    auto inputs = make_inputs(*reference, *make_state(reference->inputs, *reference, *weights), 1);
    ASSERT_TRUE(inputs.ok());
    expect_slices_equal_whole(reference->forward, *inputs, state);
  }
}

}  // namespace
}  // namespace tilepilot::eval
