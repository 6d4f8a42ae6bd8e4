#include "agent/builtin/writer/kernel_signature.h"

#include <algorithm>

namespace tilepilot::agent::builtin {

std::string NamePool::take(std::string wanted) {
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

namespace {

bool same_place(const TensorAccess& a, const TensorAccess& b) {
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(), [](auto& x, auto& y) {
    return x.loop == y.loop && x.extent == y.extent && x.offset == y.offset && x.loop >= 0;
  });
}

class Signer {
 public:
  Signer(const SignatureRequest& request, NamePool& pool)
      : request_(request), graph_(request.graph), group_(request.group), tiles_(request.tiles), pool_(pool) {}

  std::optional<KernelSignature> run() {
    for (int id : leaves_in_reading_order())
      if (!add_leaf(id)) return std::nullopt;
    for (int id : group_.outputs)
      if (!add_result(id)) return std::nullopt;
    // Results with tensors of their own are the last parameters.
    std::stable_sort(result_.results.begin(), result_.results.end(),
                     [](auto& a, auto& b) { return (a.argument >= 0) > (b.argument >= 0); });
    choose_dtype();
    return std::move(result_);
  }

 private:
  const SignatureRequest& request_;
  const PrimitiveGraph& graph_;
  const Group& group_;
  const TilePlan& tiles_;
  NamePool& pool_;
  KernelSignature result_;
  std::map<std::pair<int, Shape>, std::string> known_;

  std::vector<int> leaves_in_reading_order() const {
    std::vector<int> order;
    for (int id : group_.members)
      for (int arg : graph_.at(id).args) {
        auto leaf = group_.axes.leaves.find(arg);
        if (leaf == group_.axes.leaves.end() || std::count(order.begin(), order.end(), arg)) continue;
        int base = leaf->second.base;
        if (graph_.at(base).kind != Primitive::Kind::constant && base != request_.product) order.push_back(arg);
      }
    return order;
  }

  bool add_leaf(int id) {
    const Leaf& leaf = group_.axes.leaves.at(id);
    auto access = describe_access(tiles_, tiles_.strides.at(id), leaf.view.offset, numel(graph_.at(leaf.base).shape));
    if (!access) return false;
    auto [known, fresh] = known_.try_emplace({leaf.base, access->shape()});
    if (fresh) {
      known->second = pool_.take(request_.facts.name(leaf.base));
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
    const int home = request_.facts.home(id), argument = overwritten_argument(id, home, *access);
    if (home >= 0 && argument < 0) return false;
    if (argument >= 0) {
      result_.results.push_back({id, access->shape(), argument});
      result_.name_of[id] = result_.parameters[static_cast<size_t>(argument)].name;
      result_.access_of[id] = std::move(*access);
      return true;
    }
    bool statistic = p.kind == Primitive::Kind::reduce || p.hint == "mean" || p.hint == "unbiased";
    std::string name = pool_.take(statistic && !p.hint.empty() ? p.hint + "_out" : "out");
    result_.parameters.push_back({name, access->shape_text(), p.dtype});
    result_.results.push_back({id, access->shape()});
    result_.name_of[id] = name;
    result_.access_of[id] = std::move(*access);
    return true;
  }

  // An operand that dies here, or that the result is to replace, and is read exactly where the result is written.
  int overwritten_argument(int id, int home, const TensorAccess& access) const {
    if (home < 0 && !request_.overwriting.count(id)) return -1;
    for (size_t i = 0; i < result_.arguments.size(); ++i) {
      int base = result_.arguments[i].base, readers = 0;
      bool fits = graph_.at(base).dtype == graph_.at(id).dtype;
      fits = fits && (home < 0 ? request_.facts.dies_here(base) : base == home);
      for (auto& [leaf_id, leaf] : group_.axes.leaves)
        if (leaf.base == base && result_.access_of.count(leaf_id)) {
          ++readers;
          fits = fits && same_place(result_.access_of.at(leaf_id), access);
        }
      bool taken = std::any_of(result_.results.begin(), result_.results.end(),
                               [&](auto& result) { return result.argument == static_cast<int>(i); });
      if (fits && readers == 1 && !taken) return static_cast<int>(i);
    }
    return -1;
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

std::optional<KernelSignature> make_signature(const SignatureRequest& request, NamePool& pool) {
  return Signer(request, pool).run();
}

}  // namespace tilepilot::agent::builtin
