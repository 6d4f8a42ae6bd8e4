#include "eval/worker/rotating_inputs.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

namespace tilepilot::eval {

RotatingInputs::RotatingInputs(std::vector<std::vector<at::Tensor>> contents, c10::Device device)
    : originals_(std::move(contents)) {
  for (auto& original : originals_) {
    auto& set = sets_.emplace_back();
    for (auto& tensor : original) {
      at::Tensor place = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
      set.push_back(place.copy_(tensor));
    }
  }
}

void RotatingInputs::rotate() {
  turn_ = (turn_ + 1) % sets_.size();
  restore();
}

void RotatingInputs::restore() {
  at::NoGradGuard no_grad;
  for (size_t content = 0; content < originals_.size(); ++content) {
    auto& set = sets_[holder_of(content)];
    for (size_t k = 0; k < set.size(); ++k) set[k].copy_(originals_[content][k]);
  }
}

void RotatingInputs::replace(size_t content, const std::vector<at::Tensor>& tensors) { originals_[content] = tensors; }

}  // namespace tilepilot::eval
