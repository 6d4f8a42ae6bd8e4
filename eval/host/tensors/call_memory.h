// Memory of a GPU that a call of a program hands out, frees and hands out again still holds what was there, maybe the
// right answer. So what `torch.empty` and its like give within a call is memory that no tensor of the call has had:
// another block, or, where there is none, the same one overwritten. In calls that look at what kernels write, and that
// are not timed, all of it is filled, and so are the outputs that are made for kernels. On a processor the allocator
// itself sees to that (worker/candidate/fresh_memory.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>
#include <vector>

namespace tilepilot::eval {

// Whether the function of torch, or of tensors, of this name leaves the memory that it takes as it is.
bool leaves_memory_unwritten(std::string_view name);

class CallMemory {
 public:
  // Writes all of a tensor's memory.
  using Fill = std::function<void(const at::Tensor&)>;
  // A call begins: what comes now is its own. With `fill`, nothing that it is given holds anything of before.
  void begin(Fill fill = {});
  // A tensor of the call, which has its memory for a time.
  void note(const at::Tensor& tensor);
  // `made`, which is fresh, or a tensor like it, in memory that no noted tensor has had.
  at::Tensor unseen(const at::Tensor& made) const;
  // An output that is made for a kernel, filled if the call fills.
  at::Tensor for_kernel(const at::Tensor& made) const;

 private:
  struct Range {
    uintptr_t begin, end;
  };
  std::vector<Range> noted_;
  Fill fill_;

  bool was_noted(const at::Tensor& tensor) const;
};

}  // namespace tilepilot::eval
