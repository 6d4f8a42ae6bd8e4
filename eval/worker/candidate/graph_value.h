// Arguments of an exported graph as values of the evaluator.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "compiler/stage/python/interpreter.h"
#include "eval/graph/reference.h"
#include "eval/host/torch_host.h"

namespace tilepilot::eval {

// `tensors`: by the numbers that the argument names.
stage::Value graph_value(TorchHost& host, stage::Interpreter& interpreter, const GraphArgument& argument,
                         const std::vector<at::Tensor>& tensors);

}  // namespace tilepilot::eval
