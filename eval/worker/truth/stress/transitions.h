// Until when a counter matters: a warm-up, a schedule, an annealing that ends.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/graph/graph_uses.h"
#include "eval/torch/replay.h"

namespace tilepilot::eval {

// What a model gives with a counter at `steps` beyond where it stands: a digest, or nothing where it gives nothing.
using ResultAt = std::function<std::optional<std::string>(int64_t steps)>;

// The least number of steps, up to `latest`, from which on the result is the one at `latest`; nullopt: it is the same
// from the start, or still changes there. By bisection: about log2(latest) calls. It takes for granted that a result
// which is once the last one stays so.
std::optional<int64_t> end_of_transition(const ResultAt& result, int64_t latest);

// Buffers of one whole number, by value of the graph.
std::vector<size_t> counters_of(const Graph& graph, const State& given);

// Whether a value is of whole numbers, and the model does anything else with them than count on.
bool reads_whole_numbers_in(const Graph& graph, const GraphUses& uses, int value);
// Whether a buffer is one of these.
bool reads_whole_numbers(const Reference& reference, const GraphUses& uses);

// How many steps bring a counter near the end of what it decides, by value; without those that decide nothing, or go on
// deciding, or take too long to find out. `leaves`: of a call; `device`: the replay's.
std::map<size_t, int64_t> steps_to_the_end(const std::vector<size_t>& counters, const Replay& eager, const State& given,
                                           const std::vector<c10::IValue>& leaves, c10::Device device, uint64_t seed);

}  // namespace tilepilot::eval
