// KernelBench's rule for values, which verdicts report beside ours: inputs drawn five times under seeds that come from
// 42, and outputs all close to eager's.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "eval/graph/reference.h"
#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

std::vector<uint64_t> kernelbench_seeds(int count);
// What drawing so many numbers takes, as it draws them: on a processor, one after another. By a small draw.
double seconds_to_draw(int64_t numbers);
// Absolute and relative, by the type of the output.
double tolerance_of_kernelbench(at::ScalarType type);
// As torch.allclose, in parts, where `expected` is. @pre equal shapes and types
bool all_close(const at::Tensor& actual, const at::Tensor& expected, double tolerance);
// All outputs of a trial: output i is `(*given)[place[i]]`, of the same type and sizes. Raises `tolerance` to the
// largest that applies. null: the answer has another form.
bool are_close(const Trial& trial, const std::vector<at::Tensor>* given, const std::vector<size_t>& place,
               double& tolerance);
int64_t numbers_of_inputs(const Graph& forward);

}  // namespace tilepilot::eval
