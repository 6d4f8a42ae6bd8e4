// Which primitives run together in one kernel. A group's members share one set of loops (axes.h) and one set of reduced
// axes; a value that others need leaves through memory.
#pragma once

#include <set>
#include <vector>

#include "agent/builtin/import/axes.h"

namespace tilepilot::agent::builtin {

struct Group {
  std::vector<int> members;  // sorted: operands before users; includes views between members
  std::vector<int> updates;  // buffers that the kernel writes anew; not among the members
  std::vector<int> outputs;  // members that something outside needs
  GroupAxes axes;
  bool has_reduction() const { return !axes.reduced.empty(); }
};

struct Grouping {
  std::vector<Group> groups;
  std::vector<int> group_of;  // primitive -> group; -1: none
};

// Greedy, in graph order: each map or reduction joins the groups that feed it, as long as the result is legal. The
// products of the graph nodes `apart` end their groups: nothing joins the map behind one, a bias or a copy.
Grouping group_primitives(const PrimitiveGraph& graph, const std::set<int>& apart = {});
// The product of the same graph node that a map finishes; -1: none.
int product_behind(const PrimitiveGraph& graph, int id);

// Members that something outside of the set needs, or the graph's results; never views.
std::vector<int> outside_users(const PrimitiveGraph& graph, const std::vector<int>& members);

}  // namespace tilepilot::agent::builtin
