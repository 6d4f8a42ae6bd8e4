#include "eval/host/tensors/call_memory.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

namespace tilepilot::eval {
namespace {

constexpr size_t kMostNoted = size_t{1} << 16;     // with more, every block counts as seen
constexpr size_t kMostSpared = size_t{256} << 20;  // bytes: of larger ones a second block is dearer than writing it
// A number of these bytes is finite in every floating type.
constexpr int kOverwritten = 0x5B;

uintptr_t address_of(const at::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.storage().data()); }

}  // namespace

bool leaves_memory_unwritten(std::string_view name) {
  return name == "empty" || name == "empty_like" || name == "new_empty" || name == "empty_strided" ||
         name == "new_empty_strided" || name == "empty_permuted";
}

void CallMemory::begin(Fill fill) {
  noted_.clear();
  fill_ = std::move(fill);
}

void CallMemory::note(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || noted_.size() > kMostNoted) return;
  const uintptr_t begin = address_of(tensor);
  if (begin == 0 || (!noted_.empty() && noted_.back().begin == begin)) return;
  noted_.push_back({begin, begin + tensor.storage().nbytes()});
}

bool CallMemory::was_noted(const at::Tensor& tensor) const {
  if (noted_.size() > kMostNoted) return true;
  const uintptr_t begin = address_of(tensor), end = begin + tensor.storage().nbytes();
  return std::any_of(noted_.begin(), noted_.end(),
                     [&](const Range& range) { return begin < range.end && range.begin < end; });
}

at::Tensor CallMemory::unseen(const at::Tensor& made) const {
  if (!made.defined() || !made.has_storage() || made.numel() == 0) return made;
  if (fill_) return for_kernel(made);
  if (!was_noted(made)) return made;
  at::NoGradGuard no_grad;
  const at::DisableRecordFunctionGuard unobserved;
  if (made.storage().nbytes() <= kMostSpared) {
    try {
      const at::Tensor other = at::empty_strided(made.sizes(), made.strides(), made.options());
      if (!was_noted(other)) return other;
    } catch (const c10::OutOfMemoryError&) {}  // then the same block has to do
  }
  const auto size = static_cast<int64_t>(made.storage().nbytes());
  at::empty({0}, made.options().dtype(at::kByte)).set_(made.storage(), 0, {size}, {1}).fill_(kOverwritten);
  return made;
}

at::Tensor CallMemory::for_kernel(const at::Tensor& made) const {
  if (fill_ && made.numel() > 0) fill_(made);
  return made;
}

}  // namespace tilepilot::eval
