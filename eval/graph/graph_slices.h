// Whether an exported graph can be run in slices along one axis of its inputs, so that a large model need not be in
// memory at once in float64: each slice of the inputs gives the slice of every output. Found from the rules of
// eval/graph/axis_rules.h, conservatively: where a rule is missing there is no plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "eval/graph/graph_uses.h"

namespace tilepilot::eval {

// Of `extent` parts that are cut, each is `unit` places long along this axis.
struct AxisCut {
  int axis = 0;
  int64_t unit = 1;
  bool operator==(const AxisCut&) const = default;
};

// An argument's element that is the extent of a cut axis.
struct CutSize {
  size_t node = 0;
  std::string_view argument;
  size_t position = 0, element = 0;
  int64_t unit = 1;
};

struct GraphSlices {
  int64_t extent = 0;
  std::vector<std::optional<AxisCut>> cuts;  // by value; nullopt: every slice has the whole
  std::vector<CutSize> sizes;
};

// The first axis of the largest input that reaches every output; nullopt: there is none, or the graph writes into
// inputs or weights. @pre no node draws random numbers
std::optional<GraphSlices> find_slices(const GraphUses& uses);

// The graph of a slice of so many parts; values and nodes have the same numbers.
Graph slice_graph(const Graph& graph, const GraphSlices& slices, int64_t parts);

// The float64 run of a graph: how many parts a slice has, and what is in memory at once, in float64.
struct ExactRun {
  std::optional<GraphSlices> slices;  // nullopt: the whole graph at once
  int64_t parts = 0;                  // of a slice
  int64_t peak = 0;                   // bytes of what nodes make, and of outputs
  int64_t outputs = 0;                // bytes of these alone
  int64_t inputs = 0, weights = 0;    // bytes of inputs, of a slice where they are cut, and of weights
};
// Beyond this, what a run holds in float64 beside weights is cut where the graph allows it.
constexpr int64_t kExactBytes = int64_t{256} << 20, kExactBytesOnGpu = int64_t{1} << 30;
using FindSlices = std::optional<GraphSlices> (*)(const GraphUses& uses);
ExactRun plan_exact_run(const GraphUses& uses, int64_t limit = kExactBytes, FindSlices find = find_slices);

}  // namespace tilepilot::eval
