// Inputs that hold what another input holds: what a model compares (tokens and the tokens to stop at, queries and keys)
// seldom agrees in random draws.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "eval/worker/truth/stress/value_draws.h"

namespace tilepilot::eval {

// The first input before input `i` of its form, of whole numbers also of another; of floating numbers else the first of
// fewer elements that broadcasts to it, as thresholds for each row or column do. `i`: there is none.
size_t first_alike(const std::vector<at::Tensor>& inputs, size_t i);

// Whether input `i` may hold what another one does: whole numbers only where they may come twice and in any order.
bool may_agree(const std::vector<at::Tensor>& inputs, const std::vector<InputFacts>& facts, size_t i);

// With every second row, or element where there are no rows, these are whole numbers or the other one broadcasts, of
// the other one, in the range that the facts tell; if `nearly`, up to eight roundings away, whole numbers up to 256.
at::Tensor agreeing(const at::Tensor& tensor, const at::Tensor& other, const InputFacts& facts, bool nearly,
                    Draws& draws);

}  // namespace tilepilot::eval
