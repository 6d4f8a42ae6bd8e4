#include "eval/worker/truth/degeneracy.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "eval/worker/candidate/aten_policy.h"

namespace tilepilot::eval {
namespace {

struct Answer {
  std::string name;
  at::Tensor values;
};

std::vector<Answer> trivial_answers(const at::Tensor& truth, const std::vector<at::Tensor>& inputs) {
  std::vector<Answer> answers = {{"zeros", at::zeros({}, truth.options()).expand(truth.sizes())}};
  if (truth.numel() > 1) answers.push_back({"its mean", truth.mean().expand(truth.sizes())});
  for (auto& input : inputs) {
    if (input.is_floating_point() && input.numel() == truth.numel())
      answers.push_back({"a copy of an input", input.to(truth.device()).reshape(truth.sizes())});
  }
  return answers;
}

// By the rules that ask how large errors are; of these an ill-conditioned output allows so much that anything passes.
std::vector<ScaledError> sizes_of(std::vector<ScaledError> errors) {
  for (ScaledError& error : errors) error.lost = error.bias = error.fill = 0;
  return errors;
}

bool all_within(const std::vector<ScaledError>& errors, const std::vector<ScaledError>& allowed) {
  return std::equal(errors.begin(), errors.end(), allowed.begin(), within);
}

// So much better than a trivial answer must eager be, and every candidate at least.
constexpr double kEagerBetter = 4, kCandidateBetter = 2;

}  // namespace

Triviality find_triviality(const Expected& expected, const Allowance& allowance, const std::vector<ScaledError>& eager,
                           const std::vector<at::Tensor>& inputs) {
  Triviality result;
  std::vector<ScaledError> narrowed = allowance.scaled;
  for (auto& [name, values] : trivial_answers(expected.truth, inputs)) {
    const auto errors = sizes_of(scaled_errors(values, expected, allowance.parts));
    if (!all_within(errors, allowance.scaled)) continue;
    if (result.answer.empty()) result.answer = name;
    bool better = false;
    for (size_t i = 0; i < errors.size(); ++i) {
      if (!(errors[i].rms > kEagerBetter * eager[i].rms) || !(errors[i].rms > 0)) continue;
      narrowed[i].rms = std::min(narrowed[i].rms, errors[i].rms / kCandidateBetter);
      better = true;
    }
    result.by_nature = result.by_nature || !better;
  }
  if (!result.answer.empty() && !result.by_nature) result.narrowed = std::move(narrowed);
  return result;
}

bool computes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const GraphNode& node) {
    return aten_work(node.op.substr(0, node.op.find('.'))) == AtenWork::computes;
  });
}

}  // namespace tilepilot::eval
