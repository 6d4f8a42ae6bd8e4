// Calls of operators that LibTorch has not written for 16-bit types on the CPU: computed in float32, results rounded.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

#include <exception>
#include <functional>
#include <optional>

namespace tilepilot::eval {

// Whether `error` says that an operator does not exist for an element type.
bool lacks_type(const std::exception& error);

// Whether a tensor among the arguments has a 16-bit floating type.
bool has_16_bit(const torch::jit::Stack& stack);

// Runs `call` on `stack` with float32 in place of 16-bit tensors; its float32 results get the 16-bit type that
// its arguments had, which is returned. Nothing, and nothing was run, if no argument has one.
std::optional<at::ScalarType> call_widened(torch::jit::Stack& stack, const std::function<void()>& call);

}  // namespace tilepilot::eval
