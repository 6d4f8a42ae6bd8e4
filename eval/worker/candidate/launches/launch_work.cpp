#include "eval/worker/candidate/launches/launch_work.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "eval/worker/staged_backend.h"
#include "eval/worker/truth/compare/digest.h"

namespace tilepilot::eval {
namespace {

at::Tensor memory_as(void* data, int64_t bytes, at::ScalarType type, c10::Device device) {
  const auto size = static_cast<int64_t>(c10::elementSize(type));
  return at::from_blob(data, {bytes / size}, at::device(device).dtype(type));
}

}  // namespace

LaunchWork::LaunchWork(const std::vector<runtime::Argument>& arguments, c10::Device device) : device_(device) {
  for (auto& argument : arguments) {
    const auto* view = std::get_if<runtime::TensorView>(&argument);
    const int64_t bytes = view && view->data ? bytes_spanned(*view) : 0;
    if (bytes == 0) continue;
    memories_.push_back({view->data, bytes, {}});
    memories_.back().digest = digest(memories_.back());
  }
}

bool LaunchWork::was_done() const {
  std::vector<std::string> after;
  for (const Memory& memory : memories_) after.push_back(digest(memory));
  for (size_t i = 0; i < memories_.size(); ++i) {
    if (after[i] == memories_[i].digest || is_one_number(memories_[i])) continue;
    bool copied = false;
    for (size_t k = 0; k < memories_.size(); ++k)
      copied =
          copied || (k != i && memories_[k].data != memories_[i].data && memories_[k].bytes == memories_[i].bytes &&
                     (after[k] == after[i] || memories_[k].digest == after[i]));
    if (!copied) return true;
  }
  return false;
}

std::string LaunchWork::digest(const Memory& memory) const {
  at::NoGradGuard no_grad;
  at::DisableRecordFunctionGuard unobserved;
  return digest_of(memory_as(memory.data, memory.bytes, at::kByte, device_));
}

// Of 32 bits, or one of 16 bits twice; zeros of either sign are one number. Others are not: signs may be the result. Of
// a single number nothing can be said.
bool LaunchWork::is_one_number(const Memory& memory) const {
  at::NoGradGuard no_grad;
  at::DisableRecordFunctionGuard unobserved;
  if (memory.bytes % 4 != 0 || memory.bytes == 4 || reinterpret_cast<uintptr_t>(memory.data) % 4 != 0) return false;
  constexpr int kWithoutSigns = 0x7FFF7FFF;
  const at::Tensor words = memory_as(memory.data, memory.bytes, at::kInt, device_);
  return words.eq(words[0]).all().item<bool>() || words.bitwise_and(kWithoutSigns).eq(0).all().item<bool>();
}

}  // namespace tilepilot::eval
