// Moving tensors to another device in place: whoever holds them holds them there, and what shared memory still does.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tilepilot::eval {

// @post each of `tensors` is on `device`, with its sizes, strides and numbers; two that shared memory share it
void move_tensors(const std::vector<at::Tensor>& tensors, c10::Device device);

}  // namespace tilepilot::eval
