#include "eval/worker/candidate/number_index.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <map>

namespace tilepilot::eval {
namespace {

bool comparable(const at::Tensor& tensor, const at::Tensor& weight) {
  const bool both_float = tensor.is_floating_point() && weight.is_floating_point();
  return tensor.numel() == weight.numel() && (both_float || tensor.scalar_type() == weight.scalar_type());
}

constexpr int64_t kFirst = 16;

// The first elements in an element type. Empty for what a double cannot hold, which tells nothing.
std::vector<double> first_numbers(const at::Tensor& tensor, at::ScalarType type) {
  if (tensor.is_complex()) return {};
  const at::Tensor first = tensor.reshape({-1}).narrow(0, 0, std::min(kFirst, tensor.numel()));
  const at::Tensor numbers = first.to(type).to(at::kDouble).cpu().contiguous();
  return {numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel()};
}

}  // namespace

bool same_numbers(const at::Tensor& tensor, const at::Tensor& weight) {
  const auto equal = [&](int64_t count) {
    const at::Tensor numbers = tensor.reshape({-1}).narrow(0, 0, count).to(weight.scalar_type());
    return numbers.equal(weight.reshape({-1}).narrow(0, 0, count));
  };
  return comparable(tensor, weight) && equal(std::min(kFirst, tensor.numel())) && equal(tensor.numel());
}

NumberIndex::NumberIndex(const std::vector<at::Tensor>& tensors) {
  for (auto& tensor : tensors) {
    entries_.push_back({tensor, {}});
    if (!tensor.defined()) continue;
    entries_.back().first = first_numbers(tensor, tensor.scalar_type());
    by_size_[tensor.numel()].push_back(entries_.size() - 1);
  }
}

std::vector<size_t> NumberIndex::with_numbers_of(const at::Tensor& tensor) const {
  std::vector<size_t> found;
  std::map<at::ScalarType, std::vector<double>> first;
  auto candidates = by_size_.find(tensor.numel());
  if (candidates == by_size_.end()) return found;
  for (size_t index : candidates->second) {
    const Entry& entry = entries_[index];
    const at::ScalarType type = entry.tensor.scalar_type();
    if (!comparable(tensor, entry.tensor)) continue;
    if (first.count(type) == 0) first[type] = first_numbers(tensor, type);
    if (first[type] == entry.first && same_numbers(tensor, entry.tensor)) found.push_back(index);
  }
  return found;
}

std::vector<size_t> NumberIndex::alike(const at::Tensor& tensor) const {
  std::vector<size_t> found = with_numbers_of(tensor);
  auto candidates = by_size_.find(tensor.numel());
  if (candidates == by_size_.end()) return found;
  for (size_t index : candidates->second) {
    const at::Tensor& own = entries_[index].tensor;
    if (own.scalar_type() == tensor.scalar_type() || std::count(found.begin(), found.end(), index)) continue;
    if (same_numbers(own, tensor)) found.push_back(index);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tilepilot::eval
