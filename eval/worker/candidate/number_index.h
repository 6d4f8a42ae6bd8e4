// Finds the tensors whose numbers another has. All numbers are looked at only where the first ones agree: a model of a
// thousand layers has a thousand weights of one size.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace tilepilot::eval {

// The same elements in the same order, in `weight`'s element type.
bool same_numbers(const at::Tensor& tensor, const at::Tensor& weight);

class NumberIndex {
 public:
  // Undefined tensors are not found.
  explicit NumberIndex(const std::vector<at::Tensor>& tensors);

  // Those that `tensor` has the numbers of, in their element type; indices rise.
  std::vector<size_t> with_numbers_of(const at::Tensor& tensor) const;
  // Those, and those that have `tensor`'s numbers in its element type.
  std::vector<size_t> alike(const at::Tensor& tensor) const;

 private:
  struct Entry {
    at::Tensor tensor;
    std::vector<double> first;
  };
  std::vector<Entry> entries_;
  std::unordered_map<int64_t, std::vector<size_t>> by_size_;  // number of elements
};

}  // namespace tilepilot::eval
