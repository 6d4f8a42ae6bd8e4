// The memory that a tensor spans, from its first element to its last, whatever its strides: elements, what lies between
// them, and once what an expanded axis repeats.
#pragma once

#include <ATen/core/Tensor.h>

namespace tilepilot::eval {

// In elements; 0 of a tensor without elements. @pre strides are not negative
int64_t span_length(at::IntArrayRef sizes, at::IntArrayRef strides);
// A view of that memory with one axis. @pre the tensor is strided
at::Tensor span_of(const at::Tensor& tensor);
// The tensor with one element of each axis along which `like`, of its shape, is expanded.
at::Tensor without_repetitions(at::Tensor tensor, const at::Tensor& like);
// What its elements take one after the other, those of an expanded axis each time that they repeat; INT64_MAX: more
// than there can be. It looks at the shape alone.
int64_t bytes_of_elements(const at::Tensor& tensor);
// Another tensor with the same strides over a copy of that memory.
at::Tensor copy_of(const at::Tensor& tensor, c10::Device device);

}  // namespace tilepilot::eval
