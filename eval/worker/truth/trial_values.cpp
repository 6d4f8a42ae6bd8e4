// What the values of a trial come to: their size, which of them are numbers, copies.
#include <fmt/format.h>

#include <algorithm>

#include "eval/torch/span.h"
#include "eval/worker/truth/digest.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

using c10::IValue;

namespace {

at::Tensor finite_places_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) return {};
  const at::Tensor places = tensor.isfinite();
  return places.all().item<bool>() ? at::Tensor() : places;
}

}  // namespace

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

std::vector<at::Tensor> finite_places(const Trial& trial) {
  std::vector<at::Tensor> places;
  const auto add = [&](const Expected& made) {
    places.push_back(finite_places_of(made.eager));
    places.push_back(finite_places_of(made.truth));
  };
  for (auto& output : trial.outputs) add(output);
  for (auto& changed : trial.mutated_expected) add(changed);
  for (auto& changed : trial.state) add(changed.expected);
  return places;
}

bool same_places(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() == b.defined() && (!a.defined() || a.equal(b));
  });
}

namespace {

// Masks that are drawn hide other places each time. Whether what is no number is minus infinity, in the truth where
// eager has it, and in not many more elements than where the places are those given.
bool are_masked_alike(const std::vector<Expected>& outputs, const std::vector<at::Tensor>& given) {
  constexpr int64_t kMore = 2;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor &eager = outputs[i].eager, &before = given[2 * i];
    const at::Tensor places = finite_places_of(eager), of_truth = finite_places_of(outputs[i].truth);
    if (!places.defined() && !of_truth.defined()) continue;
    if (!places.defined() || !of_truth.defined() || !before.defined() || before.sizes() != places.sizes()) return false;
    const at::Tensor hidden = places.logical_not();
    if (!places.equal(of_truth.to(places.device())) || !hidden.equal(eager.eq(-HUGE_VAL))) return false;
    if (hidden.sum().item<int64_t>() > kMore * before.logical_not().sum().item<int64_t>()) return false;
  }
  return true;
}

}  // namespace

bool same_numbers(const Trial& trial, const std::vector<at::Tensor>& given) {
  const std::vector<at::Tensor> places = finite_places(trial);
  const bool is_stateless = places.size() == 2 * trial.outputs.size() && places.size() == given.size();
  if (is_stateless && are_masked_alike(trial.outputs, given)) return true;
  if (places.size() == given.size()) return same_places(places, given);
  const size_t outputs = 2 * trial.outputs.size();
  if (outputs > given.size()) return false;
  const auto all_numbers = [&](const std::vector<at::Tensor>& of) {
    return std::none_of(of.begin() + static_cast<std::ptrdiff_t>(outputs), of.end(),
                        [](const at::Tensor& each) { return each.defined(); });
  };
  const auto first = [&](const std::vector<at::Tensor>& of) {
    return std::vector(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(outputs));
  };
  return all_numbers(places) && all_numbers(given) && same_places(first(places), first(given));
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
