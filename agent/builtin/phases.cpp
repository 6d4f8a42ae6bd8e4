#include "agent/builtin/phases.h"

#include <algorithm>

namespace tilepilot::agent::builtin {

namespace {

constexpr int kCheapToRepeat = 4;

class Phases {
 public:
  Phases(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles)
      : graph_(graph), group_(group), tiles_(tiles) {}

  PhasePlan run() {
    find_levels();
    pair_reductions();
    find_readers();
    decide_kept();
    fill_phases();
    return std::move(plan_);
  }

 private:
  const PrimitiveGraph& graph_;
  const Group& group_;
  const TilePlan& tiles_;
  PhasePlan plan_;
  std::map<int, std::set<int>> phases_;  // value -> phases whose loops read it
  std::set<int> reduced_inputs_;
  std::map<int, OnePass> pairs_;  // by each of their two reductions

  bool is_member(int id) const {
    return group_.axes.leaves.count(id) == 0 && graph_.at(id).kind != Primitive::Kind::constant;
  }
  bool is_output(int id) const { return std::count(group_.outputs.begin(), group_.outputs.end(), id) > 0; }
  bool is_reduction(int id) const { return graph_.at(id).kind == Primitive::Kind::reduce; }

  int level(int id) const {
    auto found = plan_.level.find(id);
    return found == plan_.level.end() ? 0 : found->second;
  }

  void find_levels() {
    for (int id : group_.members) {
      int highest = 0;
      for (int arg : graph_.at(id).args) highest = std::max(highest, level(arg));
      plan_.level[id] = highest + (is_reduction(id) ? 1 : 0);
      if (is_reduction(id)) reduced_inputs_.insert(graph_.at(id).args[0]);
      if (const auto pair = pairs_.find(id); pair != pairs_.end()) plan_.level[id] = level(pair->second.first);
    }
    int count = 1;
    for (auto& [id, value] : plan_.level) count = std::max(count, value + 1);
    plan_.phases.assign(static_cast<size_t>(count), {});
  }

  // Two reductions that a phase each would find, and nothing else, are found in one.
  void pair_reductions() {
    const bool may_pair = tiles_.one_pass && may_count_steps(tiles_);
    for (const OnePass& found : may_pair ? find_one_pass(graph_, group_) : std::vector<OnePass>{}) {
      const auto is_between = [&](int id) {
        return is_reduction(id) && level(id) >= level(found.first) && level(id) <= level(found.second);
      };
      if (std::count_if(group_.members.begin(), group_.members.end(), is_between) != 2) continue;
      pairs_.emplace(found.second, found);
      pairs_.emplace(found.first, found);
    }
    if (!pairs_.empty()) find_levels();
  }

  // Cost of computing a value again from what is at hand.
  int cost(int id) const {
    if (!is_member(id) || is_reduction(id) || !fills_tile(group_, id)) return 0;
    const Primitive& p = graph_.at(id);
    int total = p.kind == Primitive::Kind::map ? info(p.op).cost : 0;
    for (int arg : p.args)
      if (!plan_.kept.count(arg)) total += cost(arg);
    return total;
  }

  void find_readers() {
    for (size_t i = group_.members.size(); i-- > 0;) {
      int id = group_.members[i];
      if (is_reduction(id)) {
        phases_[graph_.at(id).args[0]].insert(level(id) - 1);
        continue;
      }
      auto& own = phases_[id];
      if (is_output(id)) own.insert(level(id));
      if (!fills_tile(group_, id)) own = {level(id)};
      bool spans = own.size() > 1 || (!own.empty() && *own.rbegin() > level(id));
      bool keep = spans && tiles_.resident() && fills_tile(group_, id) &&
                  (reduced_inputs_.count(id) || cost(id) >= kCheapToRepeat);
      std::set<int> evaluated = own;
      if (keep) {
        plan_.kept.insert(id);
        plan_.last_phase[id] = *own.rbegin();
        evaluated = {level(id)};
      }
      for (int arg : graph_.at(id).args) phases_[arg].insert(evaluated.begin(), evaluated.end());
    }
  }

  // Leaves read in several phases, or reduced as they are, are copied into a tile first.
  void decide_kept() {
    if (!tiles_.resident() || !group_.has_reduction()) return;
    for (auto& [id, leaf] : group_.axes.leaves) {
      if (!fills_tile(group_, id)) continue;
      auto& own = phases_[id];
      if (own.size() < 2 && !reduced_inputs_.count(id)) continue;
      plan_.kept.insert(id);
      plan_.last_phase[id] = own.empty() ? 0 : *own.rbegin();
    }
  }

  Phase& phase(int index) { return plan_.phases[static_cast<size_t>(index)]; }

  // A statistic is named if loops over the tile read it, or a later phase does.
  bool is_needed_later(int id) const {
    for (int user : group_.members) {
      auto& args = graph_.at(user).args;
      if (!std::count(args.begin(), args.end(), id) || is_reduction(user)) continue;
      if (fills_tile(group_, user) || level(user) > level(id)) return true;
    }
    return false;
  }

  void fill_phases() {
    for (int id : group_.members) {
      if (const auto pair = pairs_.find(id); pair != pairs_.end()) {
        phase(level(id) - 1).one_pass = pair->second;
        if (is_output(id)) phase(level(id)).statistic_outputs.push_back(id);
      } else if (is_reduction(id)) {
        phase(level(id) - 1).reductions.push_back(id);
        int input = graph_.at(id).args[0];
        auto& stored = phase(level(id) - 1).stored;
        bool in_tile = plan_.kept.count(input) && level(input) < level(id) - 1;
        bool is_tile = !is_member(input) && plan_.kept.count(input);
        if (!in_tile && !is_tile && !std::count(stored.begin(), stored.end(), input)) stored.push_back(input);
        if (!plan_.last_phase.count(input)) plan_.last_phase[input] = level(id) - 1;
        if (is_output(id)) phase(level(id)).statistic_outputs.push_back(id);
      } else if (fills_tile(group_, id)) {
        auto& stored = phase(level(id)).stored;
        if (plan_.kept.count(id) && !std::count(stored.begin(), stored.end(), id)) stored.push_back(id);
        if (is_output(id)) phase(level(id)).outputs.push_back(id);
      } else if (level(id) > 0) {
        if (is_needed_later(id) && graph_.at(id).kind == Primitive::Kind::map)
          phase(level(id)).statistics.push_back(id);
        if (is_output(id)) phase(level(id)).statistic_outputs.push_back(id);
      } else if (is_output(id)) {
        phase(0).statistic_outputs.push_back(id);
      }
    }
  }
};

}  // namespace

bool fills_tile(const Group& group, int value) {
  if (!group.has_reduction()) return true;
  if (!group.axes.dims.count(value)) return false;
  return std::any_of(group.axes.reduced.begin(), group.axes.reduced.end(),
                     [&](int atom) { return group.axes.varies(value, atom); });
}

PhasePlan plan_phases(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles) {
  return Phases(graph, group, tiles).run();
}

}  // namespace tilepilot::agent::builtin
