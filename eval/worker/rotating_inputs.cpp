#include "eval/worker/rotating_inputs.h"

#include <ATen/core/grad_mode.h>

namespace tilepilot::eval {

RotatingInputs::RotatingInputs(std::vector<std::vector<at::Tensor>> sets) : sets_(std::move(sets)) {
  for (auto& set : sets_) {
    auto& original = originals_.emplace_back();
    for (auto& tensor : set) original.push_back(tensor.clone());
  }
}

void RotatingInputs::rotate() {
  at::NoGradGuard no_grad;
  turn_ = (turn_ + 1) % sets_.size();
  for (size_t i = 0; i < sets_.size(); ++i) {
    auto& source = originals_[content_of(i)];
    for (size_t k = 0; k < source.size(); ++k) sets_[i][k].copy_(source[k]);
  }
}

}  // namespace tilepilot::eval
