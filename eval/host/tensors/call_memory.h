// Memory of a GPU that a call of a program hands out, frees and hands out again still holds what was there, maybe the
// right answer. So what `torch.empty` and its like give within a call is memory that no tensor of the call has had:
// another block, or, where there is none, the same one overwritten. On a processor the allocator itself sees to that
// (worker/candidate/fresh_memory.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <vector>

namespace tilepilot::eval {

// Whether the function of torch, or of tensors, of this name leaves the memory that it takes as it is.
bool leaves_memory_unwritten(std::string_view name);

class CallMemory {
 public:
  // A call begins: what comes now is its own.
  void begin();
  // A tensor of the call, which has its memory for a time.
  void note(const at::Tensor& tensor);
  // `made`, which is fresh, or a tensor like it, in memory that no noted tensor has had.
  at::Tensor unseen(const at::Tensor& made) const;

 private:
  struct Range {
    uintptr_t begin, end;
  };
  std::vector<Range> noted_;

  bool was_noted(const at::Tensor& tensor) const;
};

}  // namespace tilepilot::eval
