// Gradients, for scripts only: what PyTorch records, and functions whose backward is written in Python. Candidates run
// forward; there every tensor is as if it had no history.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>

#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::eval {

class HostState;
class TensorObject;

// How an error of the evaluator passes through LibTorch's engine: thrown inside, and a diagnostic again at the edge.
struct EvaluatorError final : std::exception {
  explicit EvaluatorError(Error error_) : error(std::move(*error_)) {}
  const char* what() const noexcept override { return error.message.c_str(); }
  Diagnostic error;
};

// tensor.backward(...) and tensor.grad_fn, where a script runs.
Result<stage::Value> run_backward(HostState& state, TensorObject& self, stage::CallArgs& args);
stage::Value gradient_function(const at::Tensor& tensor);

// The modes no_grad, enable_grad, inference_mode and set_grad_enabled, and what modules/torch_autograd.py is built on.
void add_gradient_functions(HostState& state, stage::ModuleObject& torch);

}  // namespace tilepilot::eval
