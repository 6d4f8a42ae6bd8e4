#include "eval/graph/tolerance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

// A correct program may round differently from eager at every step: its error is another draw from the same
// distribution, so the largest of it may exceed eager's largest. Low precision errs a thousand times more.
constexpr double kOverEager = 4;
// Elementary functions of a vectorised library are good to a few units in the last place; of a 16-bit output only the
// roundings to the type count, since arithmetic is done in float32.
constexpr double kRoundings = 4;
constexpr double kRoundings16Bit = 2;
constexpr double kSingleEpsilon = 0x1p-23;
// The error of a sum of L terms in one float32 after the other is about 0.2 sqrt(L) units, the largest of many such
// sums about five times that. Tile programs sum the terms of a product so. Nobody sums more than this many numbers into
// one float32 otherwise: longer reductions are split among threads, lanes or blocks.
constexpr double kLongestProduct = 1 << 20;
constexpr double kLongestReduction = 1 << 14;
constexpr double kMaxOverRms = 4;
constexpr int64_t kFewElements = 64;  // of so few the largest error is about the mean one
// A row's own scale says less about the sums behind it than the tensor's: the rule by rows finds what is missing or of
// low precision, not roundings.
constexpr double kLocalSlack = 16;
// Of the elements: as many may be lost, whatever eager does.
constexpr double kLostShare = 1.0 / 64;
// The mean of many roundings to 16 bits is about the same for all programs that round as often: twice eager's is more
// than that. Of few elements it is a matter of luck.
constexpr double kOverEager16Bit = 2, kLuckOfMean = 8;
// In 16 bits a constant that was rounded moves all elements by half a unit at most; other roundings cancel.
constexpr double kBiasRoundings = 0.5;
// Eager may be luckier in most rows than another program, and less so in others.
constexpr double kUsualSlack = 16;

int64_t last_extent(const GraphValue& value) { return value.shape.empty() ? 1 : value.shape.back(); }

// Names of operators, without "aten::" and a trailing underscore.
using OperatorNames = std::initializer_list<std::string_view>;

const OperatorNames kAddedProducts = {"addmm", "baddbmm", "addmv", "addbmm"};
const OperatorNames kProducts = {"linear", "matmul", "mm", "bmm", "mv", "dot", "einsum", "vdot", "inner"};
const OperatorNames kAlongRows = {"softmax",           "log_softmax", "_softmax", "_log_softmax", "layer_norm",
                                  "native_layer_norm", "rms_norm",    "cumsum",   "cumprod",      "logcumsumexp"};
const OperatorNames kByChannel = {"batch_norm",
                                  "group_norm",
                                  "instance_norm",
                                  "_native_batch_norm_legit",
                                  "_native_batch_norm_legit_functional",
                                  "native_batch_norm",
                                  "native_group_norm"};
const OperatorNames kRecurrent = {"lstm",     "gru",           "rnn_tanh",      "rnn_relu", "lstm_cell",
                                  "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "bilinear"};
// Their results hold elements of their operands, or none of their values: there is nothing to sum.
const OperatorNames kNoSums = {"gather",
                               "index",
                               "index_select",
                               "embedding",
                               "select",
                               "slice",
                               "narrow",
                               "take",
                               "take_along_dim",
                               "masked_select",
                               "view",
                               "reshape",
                               "flatten",
                               "unflatten",
                               "permute",
                               "transpose",
                               "t",
                               "squeeze",
                               "unsqueeze",
                               "expand",
                               "expand_as",
                               "contiguous",
                               "clone",
                               "flip",
                               "roll",
                               "pad",
                               "constant_pad_nd",
                               "reflection_pad1d",
                               "reflection_pad2d",
                               "reflection_pad3d",
                               "replication_pad1d",
                               "replication_pad2d",
                               "replication_pad3d",
                               "cat",
                               "concat",
                               "stack",
                               "split",
                               "split_with_sizes",
                               "chunk",
                               "unbind",
                               "unfold",
                               "diagonal",
                               "diag",
                               "tril",
                               "triu",
                               "movedim",
                               "where",
                               "as_strided",
                               "max",
                               "min",
                               "amax",
                               "amin",
                               "aminmax",
                               "argmax",
                               "argmin",
                               "topk",
                               "sort",
                               "argsort",
                               "kthvalue",
                               "median",
                               "mode",
                               "max_pool1d",
                               "max_pool2d",
                               "max_pool3d",
                               "max_pool2d_with_indices",
                               "max_pool3d_with_indices",
                               "adaptive_max_pool1d",
                               "adaptive_max_pool2d",
                               "adaptive_max_pool3d",
                               "all",
                               "any",
                               "pixel_shuffle",
                               "pixel_unshuffle",
                               "one_hot",
                               "item",
                               "empty_like",
                               "zeros_like",
                               "ones_like",
                               "full_like",
                               "new_zeros",
                               "new_ones",
                               "new_full",
                               "scalar_tensor"};

bool is_one_of(std::string_view op, OperatorNames names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

std::string_view name_without_space(const GraphNode& node) {
  std::string_view op = node.op;
  if (op.substr(0, 6) == "aten::") op.remove_prefix(6);
  if (op.size() > 1 && op.back() == '_') op.remove_suffix(1);
  return op;
}

std::vector<const GraphValue*> operands_of(const Graph& graph, const GraphNode& node) {
  std::vector<const GraphValue*> operands;
  for (auto& argument : node.args) {
    for_each_value(argument, [&](int id) {
      auto& value = graph.values[static_cast<size_t>(id)];
      if (value.is_tensor) operands.push_back(&value);
    });
  }
  return operands;
}

// Statistics that were made before: nothing is summed.
bool takes_statistics(const GraphNode& node, std::string_view op) {
  constexpr size_t kFlag = 5;
  const bool of_batch = op == "batch_norm" || op == "native_batch_norm";
  const auto* flag = of_batch                ? argument_of(node, kFlag, "training")
                     : op == "instance_norm" ? argument_of(node, kFlag, "use_input_stats")
                                             : nullptr;
  return flag && std::holds_alternative<bool>(flag->data) && !std::get<bool>(flag->data);
}

SumLengths product(int64_t terms) { return {terms, 1}; }
SumLengths reduction(int64_t terms) { return {1, terms}; }

int64_t last_extents(const std::vector<const GraphValue*>& operands) {
  int64_t longest = 1;
  for (auto* operand : operands) longest = std::max(longest, last_extent(*operand));
  return longest;
}

// Terms in one element of what the node makes: from the inner extent of products, the filter of convolutions, and
// otherwise from how much smaller the result is than the largest operand.
SumLengths terms_of(const Graph& graph, const GraphNode& node) {
  auto operands = operands_of(graph, node);
  if (operands.empty() || node.outputs.empty() || node.outputs[0] < 0) return {};
  const std::string_view op = name_without_space(node);
  const int64_t first = operands[0]->numel(), second = operands.size() > 1 ? operands[1]->numel() : 1;
  if (is_one_of(op, kNoSums) || takes_statistics(node, op)) return {};
  if (is_one_of(op, kAddedProducts) && operands.size() > 1) return product(last_extent(*operands[1]));
  if (is_one_of(op, kProducts)) return product(last_extent(*operands[0]));
  if (is_one_of(op, kRecurrent)) return product(last_extents(operands));
  if (op == "scaled_dot_product_attention" && operands.size() > 1 && operands[1]->shape.size() > 1)
    return product(std::max(last_extent(*operands[0]), operands[1]->shape[operands[1]->shape.size() - 2]));
  if (op.substr(0, 4) == "conv" && operands.size() > 1 && !operands[1]->shape.empty())
    return product(second / std::max<int64_t>(1, operands[1]->shape[0]));
  if (is_one_of(op, kAlongRows)) return reduction(last_extent(*operands[0]));
  if (is_one_of(op, kByChannel) && operands[0]->shape.size() > 1)
    return reduction(first / std::max<int64_t>(1, operands[0]->shape[1]));
  int64_t largest = 1;
  for (auto* operand : operands) largest = std::max(largest, operand->numel());
  return reduction(largest / std::max<int64_t>(1, graph.values[static_cast<size_t>(node.outputs[0])].numel()));
}

SumLengths longer(SumLengths a, SumLengths b) {
  return {std::max(a.products, b.products), std::max(a.reductions, b.reductions)};
}

// Of everything that a value is made from. An operator that changes a value in place makes it anew.
std::vector<SumLengths> sums_by_value(const Graph& graph) {
  std::vector<SumLengths> sums(graph.values.size());
  for (auto& node : graph.nodes) {
    SumLengths reached = terms_of(graph, node);
    auto join = [&](int id) { reached = longer(reached, sums[static_cast<size_t>(id)]); };
    for (auto& argument : node.args) for_each_value(argument, join);
    for (auto& [name, argument] : node.kwargs) for_each_value(argument, join);
    for (int id : node.outputs) {
      if (id >= 0) sums[static_cast<size_t>(id)] = reached;
    }
    const bool in_place = !node.op.empty() && node.op.back() == '_';
    const int* changed = in_place && !node.args.empty() ? node.args[0].value_id() : nullptr;
    if (changed) sums[static_cast<size_t>(*changed)] = reached;
  }
  return sums;
}

double accumulated(SumLengths sums) {
  const double products = std::min(static_cast<double>(sums.products), kLongestProduct);
  const double reductions = std::min(static_cast<double>(sums.reductions), kLongestReduction);
  return std::sqrt(std::max(products, reductions));
}

// A measure that is no finite number measures nothing: without it the rule is stricter, with it everything would pass.
double finite_or_zero(double measure) { return std::isfinite(measure) ? measure : 0; }

ScaledError finite_of(const ScaledError& error) {
  return {finite_or_zero(error.max),   finite_or_zero(error.rms),  finite_or_zero(error.local),
          finite_or_zero(error.usual), finite_or_zero(error.lost), finite_or_zero(error.bias),
          finite_or_zero(error.fill)};
}

}  // namespace

double machine_epsilon(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, double>, 4> table = {
      {{"float64", 0x1p-52}, {"float32", kSingleEpsilon}, {"float16", 0x1p-10}, {"bfloat16", 0x1p-7}}};
  for (auto& [name, epsilon] : table) {
    if (name == dtype) return epsilon;
  }
  return 0;
}

double units_of_sum(const Graph& graph, const GraphNode& node) {
  constexpr double kOfOneSum = 0.2;  // see kLongestProduct
  const SumLengths terms = terms_of(graph, node);
  return std::max(terms.products, terms.reductions) > 1 ? kOfOneSum * accumulated(terms) : 0;
}

std::vector<SumLengths> longest_sums(const Graph& graph) {
  auto sums = sums_by_value(graph);
  std::vector<SumLengths> by_output;
  for_each_value(graph.outputs, [&](int id) {
    if (graph.values[static_cast<size_t>(id)].is_tensor) by_output.push_back(sums[static_cast<size_t>(id)]);
  });
  return by_output;
}

ScaledError allowed_error(const ToleranceBasis& basis) {
  const bool sixteen_bit = basis.epsilon > kSingleEpsilon;
  const double roundings = (sixteen_bit ? kRoundings16Bit : kRoundings) * basis.epsilon;
  const double summed = std::min(basis.epsilon, kSingleEpsilon) * accumulated(basis.sums);
  const double floor = roundings + summed;
  const double floor_of_mean = basis.numel < kFewElements ? floor : roundings + summed / kMaxOverRms;
  const double luck = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, basis.numel)));
  const ScaledError eager = finite_of(basis.eager), sensitivity = finite_of(basis.sensitivity);
  auto over = [&](double of_eager, double of_truth) { return kOverEager * std::max(of_eager, of_truth); };
  ScaledError allowed;
  allowed.max = std::max(floor, over(eager.max, sensitivity.max));
  allowed.rms = std::max(floor_of_mean, over(eager.rms, sensitivity.rms));
  allowed.local = kLocalSlack * std::max({floor, eager.local, sensitivity.local});
  allowed.usual = kUsualSlack * std::max({floor, eager.usual, sensitivity.usual});
  allowed.lost = kLostShare + over(eager.lost, sensitivity.lost);
  allowed.fill = std::max(floor, over(eager.fill, sensitivity.fill));
  allowed.bias = std::numeric_limits<double>::infinity();
  if (!sixteen_bit) return allowed;
  const double floor_of_bias = basis.epsilon * (kBiasRoundings + kRoundings16Bit * luck);
  allowed.bias = std::max(floor_of_bias, over(eager.bias, sensitivity.bias));
  if (basis.numel >= kFewElements && basis.is_own_type)
    allowed.rms = std::max({basis.epsilon / 2 + summed / kMaxOverRms,
                            (kOverEager16Bit + kLuckOfMean * luck) * eager.rms, sensitivity.rms});
  return allowed;
}

bool within(const ScaledError& error, const ScaledError& allowed) {
  const auto keeps = [&](double ScaledError::*measure) {
    return error.*measure <= allowed.*measure && std::isfinite(allowed.*measure);
  };
  return keeps(&ScaledError::max) && keeps(&ScaledError::rms) && keeps(&ScaledError::local) &&
         keeps(&ScaledError::usual) && keeps(&ScaledError::lost) && keeps(&ScaledError::fill) &&
         error.bias <= allowed.bias;  // which has no bound in float32
}

}  // namespace tilepilot::eval
