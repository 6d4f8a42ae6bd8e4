#include "eval/worker/truth/other_graph.h"

#include <fmt/format.h>

#include <map>

#include "eval/graph/graph_uses.h"
#include "eval/graph/input_numbers.h"

namespace tilepilot::eval {
namespace {

bool is_weight(const GraphValue& value) {
  return value.kind == GraphValue::Kind::parameter || value.kind == GraphValue::Kind::buffer;
}

// Parameters and buffers have the same names in every graph of a model.
std::vector<int> places_in(const Graph& graph, const Graph& other) {
  std::map<std::string, int> places;
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (is_weight(graph.values[i])) places[graph.values[i].name] = static_cast<int>(i);
  std::vector<int> from;
  for (const GraphValue& value : other.values) {
    const auto found = is_weight(value) ? places.find(value.name) : places.end();
    from.push_back(found == places.end() ? -1 : found->second);
  }
  return from;
}

Status add_own(OtherGraph& made, const Reference& reference, const TensorMap& stored) {
  made.own.resize(made.graph.values.size());
  for (size_t i = 0; i < made.own.size(); ++i) {
    const GraphValue& value = made.graph.values[i];
    if (made.from[i] >= 0 || (!is_weight(value) && value.kind != GraphValue::Kind::constant)) continue;
    std::string key = value.name;
    for (auto& parameter : reference.parameters)
      if (is_weight(value) && parameter.name == value.name) key = parameter.tensor;
    const auto found = stored.find(key);
    if (found == stored.end())
      return make_error(DiagnosticKind::reference_invalid, {},
                        fmt::format("the weights file has no tensor for `{}`", value.name), "export the model again");
    made.own[i] = found->second;
  }
  return {};
}

}  // namespace

std::vector<bool> used_values(const Graph& graph) {
  const GraphUses uses(graph);
  std::vector<bool> used;
  for (size_t id = 0; id < graph.values.size(); ++id) used.push_back(!uses.users(static_cast<int>(id)).empty());
  return used;
}

Result<std::unique_ptr<OtherGraph>> OtherGraph::make(const Reference& reference, int numbers, const TensorMap& stored,
                                                     c10::Device device) {
  auto made = std::make_unique<OtherGraph>();
  made->graph = with_other_numbers(reference, numbers);
  made->used = used_values(made->graph);
  if (variant_of(reference, numbers)) {
    made->from = places_in(reference.forward, made->graph);
    TRY(add_own(*made, reference, stored));
  }
  made->eager.emplace(TRY(Replay::prepare(made->graph, Precision::exported, device)));
  made->exact.emplace(TRY(Replay::prepare(made->graph, Precision::exact, device)));
  return made;
}

State OtherGraph::state_of(const State& state, bool exact_numbers, c10::Device device) const {
  if (from.empty()) return state;
  State placed = copy_state(own, exact_numbers, device);
  for (size_t i = 0; i < placed.size(); ++i)
    if (from[i] >= 0) placed[i] = state[static_cast<size_t>(from[i])];
  return placed;
}

}  // namespace tilepilot::eval
