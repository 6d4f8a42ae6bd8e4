#include "eval/torch/vector_math.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace tilepilot::eval {

void settle_vector_math() {
  at::NoGradGuard no_grad;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const at::Tensor one = at::full({1}, 0.5, type);
    for (auto function : {at::acos, at::asin, at::atan, at::cos, at::erf, at::erfc, at::erfinv, at::exp, at::log,
                          at::log10, at::sin, at::sqrt, at::tan, at::tanh})
      function(one);
  }
}

}  // namespace tilepilot::eval
