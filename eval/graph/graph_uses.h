// Who makes and who uses each value of an exported graph, which values share memory, and what the outputs need.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "eval/graph/reference.h"

namespace tilepilot::eval {

class GraphUses {
 public:
  // `graph` must live as long as the result.
  explicit GraphUses(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const GraphNode& node(int index) const { return graph_.nodes[static_cast<size_t>(index)]; }
  const GraphValue& value(int id) const { return graph_.values[static_cast<size_t>(id)]; }
  // The node that makes a value; -1: inputs, weights and constants.
  int producer(int id) const { return producer_[static_cast<size_t>(id)]; }
  // Nodes that use a value, in order, each once.
  const std::vector<int>& users(int id) const { return users_[static_cast<size_t>(id)]; }
  bool is_output(int id) const { return is_output_[static_cast<size_t>(id)]; }
  // Whether an output, or an input or weight that the graph changes, depends on the node.
  bool is_live(int node) const { return live_[static_cast<size_t>(node)]; }
  // The value whose memory this one is: itself unless it is a view of, or written into, another.
  int storage(int id) const { return storage_[static_cast<size_t>(id)]; }

 private:
  void find_storages();
  void find_live();

  const Graph& graph_;
  std::vector<int> producer_, storage_;
  std::vector<std::vector<int>> users_;
  std::vector<char> is_output_, live_;
};

// The graph of one value that depends on no input: the nodes that make it, and nothing else; none if it depends on one,
// or on a parameter.
std::optional<Graph> graph_of_constant(const GraphUses& uses, int id);

// The tensors among a node's arguments, in order.
std::vector<int> operands(const GraphNode& node);
// "linear" of "aten::linear".
std::string_view short_name(const GraphNode& node);
// Whether the operator writes into its first argument (`aten::add_`).
bool is_in_place(const GraphNode& node);
// "add" of both `aten::add` and `aten::add_`.
std::string_view plain_name(const GraphNode& node);
// Whether what an operator of this name gives always shows the memory of its first argument.
bool always_views(std::string_view name);
// Whether such an operator picks elements of its first operand, by indices, and computes nothing.
bool is_gather(std::string_view name);
// An argument by position or keyword; nullptr: not given.
const GraphArgument* argument_of(const GraphNode& node, size_t position, std::string_view keyword);
std::optional<double> number_of(const GraphArgument* argument);
// A list of integers, or one of them; empty if it is neither.
std::vector<int64_t> integers_of(const GraphArgument* argument);

int64_t bytes_of_element(std::string_view dtype);
int64_t bytes_of(const GraphValue& value);

}  // namespace tilepilot::eval
