// Copies of what launches of kernels wrote, in the order of the launches, for the judge: it holds them against the
// values that the model computes on the way.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "compiler/runtime/kernel.h"

namespace tilepilot::eval {

struct RecordedLaunch {
  std::string kernel;
  Span span;  // of the kernel in the program's text
  std::vector<at::Tensor> written;
};

class RecordedLaunches {
 public:
  // More is not recorded, of all launches together.
  static constexpr int64_t kMostBytes = int64_t{256} << 20;
  static constexpr size_t kMostLaunches = 256;

  explicit RecordedLaunches(c10::Device device) : device_(device) {}

  // After a launch with these arguments, when it has ended.
  void add(const ir::Program& program, const std::vector<runtime::Argument>& arguments);
  const std::vector<RecordedLaunch>& all() const { return launches_; }
  // False: there was more than is recorded.
  bool is_complete() const { return complete_; }

 private:
  c10::Device device_;
  std::vector<RecordedLaunch> launches_;
  int64_t bytes_ = 0;
  bool complete_ = true;
};

}  // namespace tilepilot::eval
