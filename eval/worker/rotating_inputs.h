// Inputs for timed calls: several sets at fixed addresses whose contents move round between samples, so that neither a
// warm address nor a remembered one gives away the answer; contents are replaced one after the other.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tilepilot::eval {

class RotatingInputs {
 public:
  // Sets on `device` that hold `contents`, which are kept as they are.
  RotatingInputs(std::vector<std::vector<at::Tensor>> contents, c10::Device device);

  size_t size() const { return sets_.size(); }
  const std::vector<at::Tensor>& operator[](size_t i) const { return sets_[i]; }
  // Set i now holds what set i + 1 held before, and so on; also undoes what calls wrote into their inputs.
  void rotate();
  // Undoes what calls wrote, and no more.
  void restore();
  // From the next rotation on, `content` is this. It is kept as it is: nobody may write to it.
  void replace(size_t content, const std::vector<at::Tensor>& tensors);
  // The set that holds `content` now.
  size_t holder_of(size_t content) const { return (content + sets_.size() - turn_) % sets_.size(); }

 private:
  std::vector<std::vector<at::Tensor>> originals_, sets_;
  size_t turn_ = 0;
};

}  // namespace tilepilot::eval
