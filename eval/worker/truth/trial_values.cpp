// What the values of a trial come to: their size, what a call has changed, copies.
#include <fmt/format.h>

#include <algorithm>

#include "eval/torch/span.h"
#include "eval/worker/truth/compare/digest.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

using c10::IValue;

std::string ChangedState::described() const {
  return fmt::format("the {} `{}`", is_buffer ? "buffer" : "parameter", name);
}

// What operators count up as they write.
std::vector<uint32_t> TrialMaker::versions_of(const State& state) {
  std::vector<uint32_t> versions;
  for (const at::Tensor& tensor : state) versions.push_back(tensor.defined() ? tensor._version() : 0);
  return versions;
}

// What calls since the start have changed; a counter counts in the last one of them.
std::vector<ChangedState> TrialMaker::changed_state(const State& start, const State& before, const State& after,
                                                    const std::vector<uint32_t>& versions) const {
  constexpr int64_t kFew = 1 << 16;  // elements: cheap to compare. Not all operators count (`batch_norm`)
  const auto is_untouched = [&](const ParameterInfo& parameter, size_t value) {
    return !parameter.is_buffer && after[value].numel() > kFew && after[value]._version() == versions[value];
  };
  std::vector<ChangedState> changed;
  for (auto& parameter : reference_.parameters) {
    const auto value = static_cast<size_t>(parameter.value);
    if (parameter.value < 0 || !before[value].defined() || is_untouched(parameter, value)) continue;
    if (digest_of(start[value]) == digest_of(after[value])) continue;
    const at::Tensor &was = before[value], &is = after[value];
    const bool counts = is.numel() == 1 && at::isIntegralType(is.scalar_type(), /*includeBool=*/false) &&
                        is.item<int64_t>() == was.item<int64_t>() + 1;
    changed.push_back({parameter.name,
                       parameter.is_buffer,
                       value,
                       {is, {}, {}},
                       unread_.count(value) == 0,
                       counts,
                       parameter.is_input});
  }
  return changed;
}

int64_t Trial::bytes() const {
  int64_t bytes = 0;
  for (auto& input : inputs) bytes += static_cast<int64_t>(input.nbytes());
  auto add = [&](const Expected& each) { bytes += static_cast<int64_t>(each.eager.nbytes() + each.truth.nbytes()); };
  for (auto& each : outputs) add(each);
  for (auto& each : mutated_expected) add(each);
  for (auto& each : state) add(each.expected);
  return bytes;
}

std::vector<at::Tensor> tensors_of(const std::vector<IValue>& leaves) {
  std::vector<at::Tensor> tensors;
  for (auto& leaf : leaves) {
    if (leaf.isTensor()) tensors.push_back(leaf.toTensor());
  }
  return tensors;
}

std::vector<IValue> copy_leaves(const std::vector<IValue>& leaves, c10::Device device) {
  std::vector<IValue> copies;
  for (auto& leaf : leaves) {
    if (!leaf.isTensor()) {
      copies.push_back(leaf);
      continue;
    }
    copies.emplace_back(copy_of(leaf.toTensor(), device));
  }
  return copies;
}

}  // namespace tilepilot::eval
