#include "agent/builtin/kernel_signature.h"

#include <algorithm>

namespace tilepilot::agent::builtin {

std::string NamePool::take(std::string wanted) {
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

namespace {

class Signer {
 public:
  Signer(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles, const TensorNames& names,
         NamePool& pool)
      : graph_(graph), group_(group), tiles_(tiles), names_(names), pool_(pool) {}

  std::optional<KernelSignature> run() {
    for (int id : leaves_in_reading_order())
      if (!add_leaf(id)) return std::nullopt;
    for (int id : group_.outputs)
      if (!add_result(id)) return std::nullopt;
    choose_dtype();
    return std::move(result_);
  }

 private:
  const PrimitiveGraph& graph_;
  const Group& group_;
  const TilePlan& tiles_;
  const TensorNames& names_;
  NamePool& pool_;
  KernelSignature result_;
  std::map<std::pair<int, Shape>, std::string> known_;

  std::vector<int> leaves_in_reading_order() const {
    std::vector<int> order;
    for (int id : group_.members)
      for (int arg : graph_.at(id).args) {
        auto leaf = group_.axes.leaves.find(arg);
        if (leaf == group_.axes.leaves.end() || std::count(order.begin(), order.end(), arg)) continue;
        if (graph_.at(leaf->second.base).kind != Primitive::Kind::constant) order.push_back(arg);
      }
    return order;
  }

  bool add_leaf(int id) {
    const Leaf& leaf = group_.axes.leaves.at(id);
    auto access = describe_access(tiles_, tiles_.strides.at(id), leaf.view.offset, numel(graph_.at(leaf.base).shape));
    if (!access) return false;
    auto [known, fresh] = known_.try_emplace({leaf.base, access->shape()});
    if (fresh) {
      known->second = pool_.take(names_(leaf.base));
      result_.parameters.push_back({known->second, access->shape_text(), graph_.at(leaf.base).dtype});
      result_.arguments.push_back({leaf.base, access->shape()});
    }
    result_.name_of[id] = known->second;
    result_.access_of[id] = std::move(*access);
    return true;
  }

  bool add_result(int id) {
    const Primitive& p = graph_.at(id);
    auto access = describe_access(tiles_, tiles_.strides.at(id), 0, numel(p.shape));
    if (!access) return false;
    bool statistic = p.kind == Primitive::Kind::reduce || p.hint == "mean" || p.hint == "unbiased";
    std::string name = pool_.take(statistic && !p.hint.empty() ? p.hint + "_out" : "out");
    result_.parameters.push_back({name, access->shape_text(), p.dtype});
    result_.results.push_back({id, access->shape()});
    result_.name_of[id] = name;
    result_.access_of[id] = std::move(*access);
    return true;
  }

  void choose_dtype() {
    std::map<std::string, int> counts;
    for (auto& parameter : result_.parameters)
      if (parameter.dtype.find("float") != std::string::npos) ++counts[parameter.dtype];
    for (auto& [dtype, count] : counts)
      if (result_.dtype.empty() || count > counts[result_.dtype]) result_.dtype = dtype;
  }
};

}  // namespace

std::optional<KernelSignature> make_signature(const PrimitiveGraph& graph, const Group& group, const TilePlan& tiles,
                                              const TensorNames& names, NamePool& pool) {
  return Signer(graph, group, tiles, names, pool).run();
}

}  // namespace tilepilot::agent::builtin
