#include "eval/worker/weight_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

std::string describe(const NamedTensor& weight) {
  return fmt::format("`{}` {}[{}]", weight.name, element_type_name(weight.tensor.scalar_type()),
                     fmt::join(weight.tensor.sizes().vec(), ", "));
}

bool same_form(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

std::vector<const NamedTensor*> only_parameters(const std::vector<NamedTensor>& weights) {
  std::vector<const NamedTensor*> parameters;
  for (auto& weight : weights) {
    if (!weight.is_buffer) parameters.push_back(&weight);
  }
  return parameters;
}

std::vector<const NamedTensor*> all(const std::vector<NamedTensor>& weights) {
  std::vector<const NamedTensor*> result;
  for (auto& weight : weights) result.push_back(&weight);
  return result;
}

bool match_in_order(const std::vector<const NamedTensor*>& to, const std::vector<const NamedTensor*>& from,
                    WeightMatch& match) {
  if (to.size() != from.size()) return false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!same_form(to[i]->tensor, from[i]->tensor)) return false;
  }
  for (size_t i = 0; i < to.size(); ++i) match.pairs.emplace_back(to[i]->tensor, from[i]->tensor);
  match.note = "the weights have other names than the model's and were matched in order";
  return true;
}

// The differences of names and forms, the first few of each kind.
std::string list_differences(const std::vector<NamedTensor>& candidate, const std::vector<NamedTensor>& model) {
  std::map<std::string, const NamedTensor*> mine, wanted;
  for (auto& weight : candidate) mine[weight.name] = &weight;
  for (auto& weight : model) wanted[weight.name] = &weight;
  std::vector<std::string> missing, foreign, different;
  for (auto& weight : model) {
    auto found = mine.find(weight.name);
    if (found == mine.end()) {
      if (!weight.is_buffer) missing.push_back(describe(weight));
    } else if (!same_form(found->second->tensor, weight.tensor)) {
      different.push_back(fmt::format("{} should be {}", describe(*found->second), describe(weight)));
    }
  }
  for (auto& weight : candidate) {
    if (wanted.count(weight.name) == 0) foreign.push_back(describe(weight));
  }
  constexpr size_t kShown = 4;
  std::string text;
  auto add = [&](std::string_view title, std::vector<std::string>& items) {
    if (items.empty()) return;
    size_t hidden = items.size() > kShown ? items.size() - kShown : 0;
    items.resize(items.size() - hidden);
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", title, fmt::join(items, ", "),
                        hidden ? fmt::format(" and {} more", hidden) : "");
  };
  add("it lacks", missing);
  add("the model has no", foreign);
  add("differs:", different);
  return text;
}

}  // namespace

WeightMatch match_weights(const std::vector<NamedTensor>& candidate, const std::vector<NamedTensor>& model) {
  WeightMatch match;
  std::string differences = list_differences(candidate, model);
  if (differences.empty()) {
    std::map<std::string, at::Tensor> sources;
    for (auto& weight : model) sources[weight.name] = weight.tensor;
    for (auto& weight : candidate) match.pairs.emplace_back(weight.tensor, sources.at(weight.name));
    if (match.pairs.size() < model.size()) match.note = "buffers of the model that the candidate lacks were left out";
    return match;
  }
  if (match_in_order(all(candidate), all(model), match)) return match;
  if (match_in_order(only_parameters(candidate), only_parameters(model), match)) return match;
  match.mismatch = "the candidate's weights are not the model's: " + differences;
  return match;
}

}  // namespace tilepilot::eval
