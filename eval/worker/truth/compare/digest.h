// A short fingerprint of a tensor's elements and form, to see whether it changed. The same on every device.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tilepilot::eval {

enum class DigestPlace {
  nearest,   // what is on the processor is read there
  operators  // by LibTorch's operators, as on a GPU
};

std::string digest_of(const at::Tensor& tensor, DigestPlace place = DigestPlace::nearest);

}  // namespace tilepilot::eval
