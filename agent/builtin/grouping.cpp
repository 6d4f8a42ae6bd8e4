#include "agent/builtin/grouping.h"

#include <algorithm>
#include <set>

namespace tilepilot::agent::builtin {

namespace {

using Members = std::set<int>;

bool computes(const Primitive& p) {
  return p.kind == Primitive::Kind::map || p.kind == Primitive::Kind::reduce || p.kind == Primitive::Kind::gather;
}

bool is_pullable_view(const Primitive& p) {
  return p.kind == Primitive::Kind::view && p.view.kind != ViewOp::Kind::slice;
}

class Grouper {
 public:
  Grouper(const PrimitiveGraph& graph, const std::set<int>& apart)
      : graph_(graph), apart_(apart), users_(graph.users()) {
    result_.group_of.assign(graph.nodes.size(), -1);
    for (auto [before, after] : graph.order) users_[static_cast<size_t>(before)].push_back(after);
  }

  Grouping run() {
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      if (computes(graph_.nodes[id]) && !only_constants(static_cast<int>(id))) place(static_cast<int>(id));
      if (graph_.nodes[id].kind == Primitive::Kind::update) place_update(static_cast<int>(id));
    }
    std::erase_if(result_.groups, [](const Group& group) { return group.members.empty(); });
    std::fill(result_.group_of.begin(), result_.group_of.end(), -1);
    for (size_t i = 0; i < result_.groups.size(); ++i)
      for (int id : all_of(result_.groups[i])) result_.group_of[static_cast<size_t>(id)] = static_cast<int>(i);
    return std::move(result_);
  }

 private:
  const PrimitiveGraph& graph_;
  const std::set<int>& apart_;
  std::vector<std::vector<int>> users_;
  Grouping result_;

  // Members and updates.
  static Members all_of(const Group& group) {
    Members all(group.members.begin(), group.members.end());
    all.insert(group.updates.begin(), group.updates.end());
    return all;
  }

  int group_of(int id) const { return result_.group_of[static_cast<size_t>(id)]; }

  bool only_constants(int id) const {
    auto& args = graph_.at(id).args;
    return std::all_of(args.begin(), args.end(),
                       [&](int arg) { return graph_.at(arg).kind == Primitive::Kind::constant; });
  }

  // The computing primitive behind `arg` and the views on the way; -1 if there is none.
  int behind_views(int arg, std::vector<int>& views) const {
    while (is_pullable_view(graph_.at(arg))) {
      views.push_back(arg);
      arg = graph_.at(arg).args[0];
    }
    if (!computes(graph_.at(arg)) || group_of(arg) < 0) return -1;
    return apart_.count(graph_.at(arg).origin) > 0 && product_behind(graph_, arg) >= 0 ? -1 : arg;
  }

  void place(int id) {
    Members members = {id};
    auto group = make_group(members);
    if (!group) return;  // stays a call of PyTorch
    std::vector<int> absorbed;
    for (int arg : operands_by_size(id)) {
      std::vector<int> views;
      int producer = behind_views(arg, views);
      if (producer < 0 || std::count(absorbed.begin(), absorbed.end(), group_of(producer))) continue;
      int other = group_of(producer);
      Members merged = members;
      merged.insert(views.begin(), views.end());
      merged.merge(all_of(result_.groups[static_cast<size_t>(other)]));
      auto candidate = make_group(merged);
      if (!candidate || makes_cycle(merged)) continue;
      members = std::move(merged);
      group = std::move(candidate);
      absorbed.push_back(other);
    }
    for (int other : absorbed) result_.groups[static_cast<size_t>(other)] = {};
    for (int member : all_of(*group))
      result_.group_of[static_cast<size_t>(member)] = static_cast<int>(result_.groups.size());
    result_.groups.push_back(std::move(*group));
  }

  // The group that computes a buffer's new value writes it over the old one.
  void place_update(int id) {
    std::vector<int> views;
    const Primitive& update = graph_.at(id);
    const int producer = behind_views(update.args[1], views);
    if (update.number != 1 || producer < 0 || !views.empty()) return;
    const int index = group_of(producer);
    Members merged = all_of(result_.groups[static_cast<size_t>(index)]);
    merged.insert(id);
    auto group = make_group(merged);
    if (!group || makes_cycle(merged)) return;
    result_.groups[static_cast<size_t>(index)] = std::move(*group);
    result_.group_of[static_cast<size_t>(id)] = index;
  }

  std::vector<int> operands_by_size(int id) const {
    std::vector<int> args = graph_.at(id).args;
    std::stable_sort(args.begin(), args.end(),
                     [&](int a, int b) { return numel(graph_.at(a).shape) > numel(graph_.at(b).shape); });
    return args;
  }

  std::optional<Group> make_group(const Members& members) const {
    Group group;
    for (int id : members)
      (graph_.at(id).kind == Primitive::Kind::update ? group.updates : group.members).push_back(id);
    auto axes = analyse_axes(graph_, group.members);
    if (!axes) return std::nullopt;
    group.axes = std::move(*axes);
    group.outputs = outside_users(graph_, group.members);
    if (!covers_kept_axes(group)) return std::nullopt;
    const bool writable = std::all_of(group.updates.begin(), group.updates.end(),
                                      [&](int update) { return serves_only_update(group, update); });
    return writable ? std::optional(std::move(group)) : std::nullopt;
  }

  // Whether nothing but its new value depends on the buffer: a kernel may read it again after it is overwritten.
  bool serves_only_update(const Group& group, int update) const {
    std::set<int> dependent = {graph_.at(update).args[0]};
    for (int id : group.members) {
      auto& args = graph_.at(id).args;
      if (std::none_of(args.begin(), args.end(), [&](int arg) { return dependent.count(arg) > 0; })) continue;
      dependent.insert(id);
      const bool leaves = std::count(group.outputs.begin(), group.outputs.end(), id) > 0;
      if (graph_.at(id).kind == Primitive::Kind::reduce || (leaves && id != graph_.at(update).args[1])) return false;
    }
    return true;
  }

  // Every result, and every reduction, varies along all axes that are not reduced; without a reduction, along all.
  bool covers_kept_axes(const Group& group) const {
    for (int id : group.members) {
      bool reduction = graph_.at(id).kind == Primitive::Kind::reduce;
      if (!reduction && !std::count(group.outputs.begin(), group.outputs.end(), id)) continue;
      for (auto& [atom, extent] : group.axes.extents) {
        bool reduced = std::binary_search(group.axes.reduced.begin(), group.axes.reduced.end(), atom);
        if (!reduced && !group.axes.varies(id, atom)) return false;
        if (reduced && !reduction && !whole_or_none(group, id)) return false;
      }
    }
    return true;
  }

  static bool whole_or_none(const Group& group, int id) {
    auto count = std::count_if(group.axes.reduced.begin(), group.axes.reduced.end(),
                               [&](int atom) { return group.axes.varies(id, atom); });
    return count == 0 || count == static_cast<std::ptrdiff_t>(group.axes.reduced.size());
  }

  // Walks from the members over everything outside, whole groups at a time; reaching a member again is a cycle.
  bool makes_cycle(const Members& members) const {
    std::vector<int> open;
    std::set<int> seen;
    auto visit_users = [&](int id) {
      for (int user : users_[static_cast<size_t>(id)])
        if (seen.insert(user).second) open.push_back(user);
    };
    for (int id : members)
      for (int user : users_[static_cast<size_t>(id)])
        if (!members.count(user) && seen.insert(user).second) open.push_back(user);
    while (!open.empty()) {
      int id = open.back();
      open.pop_back();
      if (members.count(id)) return true;
      visit_users(id);
      if (group_of(id) < 0) continue;
      for (int other : all_of(result_.groups[static_cast<size_t>(group_of(id))]))
        if (seen.insert(other).second) open.push_back(other);
    }
    return false;
  }
};

}  // namespace

std::vector<int> outside_users(const PrimitiveGraph& graph, const std::vector<int>& members) {
  std::set<int> inside(members.begin(), members.end()), needed;
  // A view of a member is taken outside, from the member's memory.
  auto need = [&](int id) {
    while (graph.at(id).kind == Primitive::Kind::view && inside.count(graph.at(id).args[0])) id = graph.at(id).args[0];
    needed.insert(id);
  };
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (inside.count(static_cast<int>(id))) continue;
    for (int arg : graph.nodes[id].args)
      if (inside.count(arg)) need(arg);
  }
  for (int id : graph.outputs)
    if (inside.count(id)) need(id);
  return {needed.begin(), needed.end()};
}

Grouping group_primitives(const PrimitiveGraph& graph, const std::set<int>& apart) {
  return Grouper(graph, apart).run();
}

int product_behind(const PrimitiveGraph& graph, int id) {
  const Primitive& p = graph.at(id);
  if (p.kind != Primitive::Kind::map) return -1;
  for (int arg : p.args)
    if (graph.at(arg).kind == Primitive::Kind::product && graph.at(arg).origin == p.origin) return arg;
  return -1;
}

}  // namespace tilepilot::agent::builtin
