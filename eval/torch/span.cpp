#include "eval/torch/span.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace tilepilot::eval {

int64_t span_length(at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t length = 1;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == 0) return 0;
    length += (sizes[axis] - 1) * strides[axis];
  }
  return length;
}

at::Tensor span_of(const at::Tensor& tensor) {
  return tensor.as_strided({span_length(tensor.sizes(), tensor.strides())}, {1}, tensor.storage_offset());
}

at::Tensor without_repetitions(at::Tensor tensor, const at::Tensor& like) {
  for (int64_t axis = 0; axis < like.dim(); ++axis) {
    if (like.stride(axis) == 0 && like.size(axis) > 1) tensor = tensor.narrow(axis, 0, 1);
  }
  return tensor;
}

int64_t bytes_of_elements(const at::Tensor& tensor) {
  auto bytes = static_cast<int64_t>(tensor.element_size());
  const at::IntArrayRef sizes = tensor.sizes();
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  for (const int64_t extent : sizes)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return INT64_MAX;
  return bytes;
}

at::Tensor copy_of(const at::Tensor& tensor, c10::Device device) {
  at::NoGradGuard no_grad;
  const at::Tensor span = span_of(tensor);
  return at::empty(span.sizes(), span.options().device(device))
      .copy_(span)
      .as_strided(tensor.sizes(), tensor.strides());
}

}  // namespace tilepilot::eval
