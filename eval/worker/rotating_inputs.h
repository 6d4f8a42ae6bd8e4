// Inputs for timed calls: several sets at fixed addresses whose contents move round between samples, so that neither a
// warm address nor a remembered one gives away the answer.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tilepilot::eval {

class RotatingInputs {
 public:
  explicit RotatingInputs(std::vector<std::vector<at::Tensor>> sets);

  size_t size() const { return sets_.size(); }
  const std::vector<at::Tensor>& operator[](size_t i) const { return sets_[i]; }
  // Set i now holds what set i + 1 held at first, and so on; also undoes what calls wrote into their inputs.
  void rotate();
  // The original set whose contents set i holds now.
  size_t content_of(size_t i) const { return (i + turn_) % sets_.size(); }

 private:
  std::vector<std::vector<at::Tensor>> sets_, originals_;
  size_t turn_ = 0;
};

}  // namespace tilepilot::eval
