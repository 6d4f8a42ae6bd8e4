#include "compiler/targets/cuda/alignment.h"

#include <algorithm>

#include "compiler/targets/cuda/replace_buffers.h"

namespace tilepilot::targets::cuda {

int64_t alignment_of(const void* address) {
  const auto bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address));
  return bits % ir::kTensorAlignment == 0 ? ir::kTensorAlignment : bits & -bits;
}

ir::Program with_alignments(const ir::Program& program, const std::vector<int64_t>& alignments) {
  ir::Program result = program;
  Replacements by;
  size_t number = 0;
  for (auto& parameter : result.parameters) {
    auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (buffer == nullptr) continue;
    const int64_t alignment = std::min((*buffer)->alignment, alignments[number++]);
    if (alignment == (*buffer)->alignment) continue;
    ir::BufferData data = **buffer;
    data.alignment = alignment;
    by.emplace(buffer->get(), std::make_shared<ir::BufferData>(std::move(data)));
    *buffer = by.at(buffer->get());
  }
  for (ir::Kernel& kernel : result.kernels) {
    Replacements of_kernel = by;
    for (const ir::Buffer& buffer : kernel.allocations) {  // views of tensors begin where these do
      const auto base = by.find(buffer->base.get());
      if (base == by.end()) continue;
      ir::BufferData data = *buffer;
      data.base = base->second;
      of_kernel.emplace(buffer.get(), std::make_shared<ir::BufferData>(std::move(data)));
    }
    kernel = replace_buffers(kernel, of_kernel);
  }
  return result;
}

}  // namespace tilepilot::targets::cuda
