#include "eval/worker/truth/stress/weight_rows.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string_view>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {
namespace {

bool measures(const Graph& graph) {
  constexpr std::string_view kMeasures[] = {"cosine_similarity",
                                            "cdist",
                                            "linalg_vector_norm",
                                            "norm",
                                            "acos",
                                            "pairwise_distance",
                                            "gt",
                                            "ge",
                                            "lt",
                                            "le",
                                            "linalg_matrix_norm",
                                            "topk",
                                            "argmin",
                                            "argmax"};
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const GraphNode& node) {
    return std::find(std::begin(kMeasures), std::end(kMeasures), short_name(node)) != std::end(kMeasures);
  });
}

bool has_rows(const at::Tensor& input, const InputFacts& facts) {
  return input.is_floating_point() && !facts.fixed && facts.few.empty() && input.dim() > 1 && input.numel() > 0;
}

// Undefined: no weight has rows as long as the input's.
at::Tensor rows_for(const Graph& graph, const State& weights, const at::Tensor& input) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor& weight = weights[i];
    const bool is_parameter = graph.values[i].kind == GraphValue::Kind::parameter;
    if (is_parameter && weight.defined() && weight.is_floating_point() && weight.dim() == 2 && weight.size(0) > 1 &&
        weight.size(1) > 1 && weight.size(1) == input.size(-1))
      return weight;
  }
  return {};
}

// The rows that labels name; undefined: no input could be the labels.
at::Tensor labels_among(const std::vector<at::Tensor>& inputs, int64_t count, int64_t rows) {
  for (const at::Tensor& input : inputs)
    if (is_integer(input) && input.numel() == count && input.min().item<int64_t>() >= 0 &&
        input.max().item<int64_t>() < rows)
      return input.flatten().to(at::kLong);
  return {};
}

at::Tensor near(const at::Tensor& input, const at::Tensor& weight, const std::vector<at::Tensor>& inputs,
                uint64_t seed) {
  constexpr double kApart = 0.125;
  const at::Tensor flat = input.flatten(0, -2), first = flat.select(-1, 0).contiguous();
  Draws draws(first, seed), of_elements(flat, seed + 1);
  at::Tensor which = draws.integers(0, weight.size(0) - 1);
  if (const at::Tensor labels = labels_among(inputs, first.numel(), weight.size(0)); labels.defined())
    which = at::where(draws.uniform().lt(0.5), labels, which);
  const at::Tensor sign = draws.uniform().lt(0.5).to(at::kFloat).mul_(2).sub_(1).unsqueeze(-1);
  const at::Tensor rows = weight.to(at::kFloat).index_select(0, which);
  return rows.mul(sign).mul(of_elements.normal().mul_(kApart).add_(1)).reshape(input.sizes()).to(input.scalar_type());
}

}  // namespace

bool may_be_near_weights(const Graph& graph, const State& weights, const std::vector<at::Tensor>& inputs,
                         const std::vector<InputFacts>& facts) {
  if (!measures(graph)) return false;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (has_rows(inputs[i], facts[i]) && rows_for(graph, weights, inputs[i]).defined()) return true;
  return false;
}

void put_near_weights(const Graph& graph, const State& weights, const std::vector<InputFacts>& facts, uint64_t seed,
                      std::vector<c10::IValue>& leaves) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> inputs;
  for (auto& leaf : leaves)
    if (leaf.isTensor()) inputs.push_back(leaf.toTensor());
  size_t number = 0;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) continue;
    const size_t i = number++;
    if (!has_rows(inputs[i], facts[i])) continue;
    if (const at::Tensor weight = rows_for(graph, weights, inputs[i]); weight.defined())
      leaf = at::empty_strided(inputs[i].sizes(), inputs[i].strides(), inputs[i].options())
                 .copy_(near(inputs[i], weight, inputs, seed + 7 * i));
  }
}

}  // namespace tilepilot::eval
