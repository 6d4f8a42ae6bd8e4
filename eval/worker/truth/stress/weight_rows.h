// Inputs whose rows lie near those of a weight, or opposite to them: what a model compares with its classes, codes or
// centres comes as close to them as random numbers never do.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/torch/replay.h"
#include "eval/worker/truth/stress/value_draws.h"

namespace tilepilot::eval {

// Whether some input that varies has rows as long as those of a weight, and the graph measures angles or distances, or
// compares.
bool may_be_near_weights(const Graph& graph, const State& weights, const std::vector<at::Tensor>& inputs,
                         const std::vector<InputFacts>& facts);

// Half of the rows of such inputs take the weight's row that an integer input of as many elements names, if there is
// one; all others take any. Half of all are opposite to theirs.
void put_near_weights(const Graph& graph, const State& weights, const std::vector<InputFacts>& facts, uint64_t seed,
                      std::vector<c10::IValue>& leaves);

}  // namespace tilepilot::eval
