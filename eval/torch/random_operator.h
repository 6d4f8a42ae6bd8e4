// Random operators in a float64 replay. A generator gives other numbers in float64 than in float32, so these operators
// draw in the type of the run they accompany, and only the arithmetic around the draw is exact.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <vector>

namespace tilepilot::eval {

enum class RandomRule {
  deterministic,  // draws nothing
  scaled_mask,    // dropout: the mask is drawn in the run's type and applied in float64
  in_place,       // fills its first argument
  drawn,          // anything else: runs as a whole in the run's type
};

// `arguments`: tensors may still be missing. A dropout that is off (not training, p = 0) is deterministic.
RandomRule random_rule(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

struct RandomTypes {
  std::vector<std::optional<at::ScalarType>> arguments;
  std::optional<at::ScalarType> result;
};
void call_random(const c10::OperatorHandle& op, RandomRule rule, const RandomTypes& types, torch::jit::Stack& stack);

}  // namespace tilepilot::eval
