#include "eval/tolerance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

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

const GraphValue* tensor_value(const Graph& graph, const GraphArgument& argument) {
  auto* id = argument.value_id();
  if (!id || !graph.values[static_cast<size_t>(*id)].is_tensor) return nullptr;
  return &graph.values[static_cast<size_t>(*id)];
}

int64_t last_extent(const GraphValue& value) { return value.shape.empty() ? 1 : value.shape.back(); }

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

// Terms in one element of what the node makes: from the inner extent of products, the filter of convolutions, and
// otherwise from how much smaller the result is than the largest operand.
int64_t terms_of(const Graph& graph, const GraphNode& node) {
  std::vector<const GraphValue*> operands;
  for (auto& argument : node.args) {
    if (auto* value = tensor_value(graph, argument)) operands.push_back(value);
  }
  if (operands.empty() || node.outputs.empty() || node.outputs[0] < 0) return 1;
  std::string_view op = std::string_view(node.op).substr(std::string_view("aten::").size());
  if (is_one_of(op, {"addmm", "baddbmm", "addmv", "addbmm"}) && operands.size() > 1) return last_extent(*operands[1]);
  if (is_one_of(op, {"linear", "matmul", "mm", "bmm", "mv", "dot", "einsum"})) return last_extent(*operands[0]);
  if (op.substr(0, 4) == "conv" && operands.size() > 1 && !operands[1]->shape.empty()) {
    return operands[1]->numel() / std::max<int64_t>(1, operands[1]->shape[0]);
  }
  if (is_one_of(op, {"softmax", "log_softmax", "layer_norm", "rms_norm", "cumsum", "scaled_dot_product_attention"})) {
    return last_extent(*operands[0]);
  }
  if (is_one_of(op, {"batch_norm", "group_norm", "instance_norm"}) && operands[0]->shape.size() > 1) {
    return operands[0]->numel() / std::max<int64_t>(1, operands[0]->shape[1]);
  }
  int64_t largest = 1;
  for (auto* operand : operands) largest = std::max(largest, operand->numel());
  return largest / std::max<int64_t>(1, graph.values[static_cast<size_t>(node.outputs[0])].numel());
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

int64_t longest_sum(const Graph& graph) {
  int64_t longest = 1;
  for (auto& node : graph.nodes) longest = std::max(longest, terms_of(graph, node));
  return longest;
}

ScaledError allowed_error(const ToleranceBasis& basis) {
  bool sixteen_bit = basis.epsilon > kSingleEpsilon;
  double accumulation = std::min(basis.epsilon, kSingleEpsilon);
  double floor = (sixteen_bit ? kRoundings16Bit : kRoundings) * basis.epsilon +
                 accumulation * std::sqrt(static_cast<double>(basis.longest_sum));
  return {std::max(floor, kOverEager * std::max(basis.eager.max, basis.sensitivity.max)),
          std::max(floor, kOverEager * std::max(basis.eager.rms, basis.sensitivity.rms))};
}

}  // namespace tilepilot::eval
