// Tensors as text, as PyTorch prints them by default: four digits, long ones cut to their edges.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tilepilot::eval {

std::string tensor_text(const at::Tensor& tensor);

}  // namespace tilepilot::eval
