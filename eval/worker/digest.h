// A short fingerprint of a tensor's elements and form, to see whether it changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tilepilot::eval {

std::string digest_of(const at::Tensor& tensor);

}  // namespace tilepilot::eval
