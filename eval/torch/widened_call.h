// Calls of operators that LibTorch has not written for the element types of their arguments, where those live: 16-bit
// types on the CPU are computed in float32, results rounded; what a GPU lacks is computed on the CPU.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

#include <exception>
#include <functional>
#include <optional>

namespace tilepilot::eval {

// Whether `error` says that an operator does not exist for a 16-bit floating type; for any type.
bool lacks_type(const std::exception& error);
bool lacks_any_type(const std::exception& error);

// Whether a tensor among the arguments has a 16-bit floating type; lives on a GPU.
bool has_16_bit(const torch::jit::Stack& stack);
bool is_on_gpu(const torch::jit::Stack& stack);

// Runs `call` on `stack` with float32 in place of 16-bit tensors; its float32 results get the 16-bit type that
// its arguments had, which is returned. Nothing, and nothing was run, if no argument has one.
std::optional<at::ScalarType> call_widened(torch::jit::Stack& stack, const std::function<void()>& call);

// Runs `call` on `stack` with copies on the CPU in place of a GPU's tensors. What it writes is written there, too; its
// results stay on the CPU, unless they are tensors that were given.
void call_on_cpu(torch::jit::Stack& stack, const std::function<void()>& call);

}  // namespace tilepilot::eval
