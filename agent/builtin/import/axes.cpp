#include "agent/builtin/import/axes.h"

#include <algorithm>
#include <set>

namespace tilepilot::agent::builtin {

AtomList AxisSpace::fresh(int64_t extent) {
  if (extent == 1) return {};
  atoms_.push_back({extent, {}});
  return {static_cast<int>(atoms_.size()) - 1};
}

AtomList AxisSpace::resolve(const AtomList& atoms) const {
  AtomList result;
  for (int atom : atoms) {
    AtomList& parts = atoms_[static_cast<size_t>(atom)].parts;
    if (parts.empty()) {
      result.push_back(atom);
      continue;
    }
    parts = resolve(parts);  // a long recurrence makes long chains of equal atoms
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

bool AxisSpace::unify(const AtomList& a, const AtomList& b) {
  AtomList left = resolve(a), right = resolve(b);
  while (!left.empty() && !right.empty()) {
    int x = left.back(), y = right.back();
    left.pop_back();
    right.pop_back();
    if (x == y) continue;
    int64_t ex = extent(x), ey = extent(y);
    if (ex == ey) {
      atoms_[static_cast<size_t>(y)].parts = {x};
      std::replace(left.begin(), left.end(), y, x);
      std::replace(right.begin(), right.end(), y, x);
      continue;
    }
    auto& longer = ex > ey ? left : right;
    int whole = ex > ey ? x : y, part = ex > ey ? y : x;
    if (extent(whole) % extent(part) != 0) return false;
    int rest = fresh(extent(whole) / extent(part))[0];
    atoms_[static_cast<size_t>(whole)].parts = {rest, part};
    longer.push_back(rest);
  }
  return left.empty() && right.empty();
}

bool GroupAxes::varies(int value, int atom) const {
  for (auto& dim : dims.at(value))
    if (std::count(dim.begin(), dim.end(), atom)) return true;
  return false;
}

AtomList GroupAxes::atoms_of(int value) const {
  AtomList result;
  for (auto& dim : dims.at(value)) result.insert(result.end(), dim.begin(), dim.end());
  return result;
}

namespace {

std::optional<Strided> apply_view(const Strided& view, const Primitive& p) {
  switch (p.view.kind) {
    case ViewOp::Kind::reshape:
      return view.reshape(p.shape);
    case ViewOp::Kind::permute:
      return view.permute(p.view.order);
    case ViewOp::Kind::expand:
      return view.expand(p.shape);
    case ViewOp::Kind::slice: {
      auto axis = static_cast<size_t>(p.view.axis);
      return view.slice(axis, p.view.start, p.shape[axis], p.view.step);
    }
  }
  return std::nullopt;
}

}  // namespace

Leaf resolve_leaf(const PrimitiveGraph& graph, int id) {
  const Primitive& p = graph.at(id);
  if (p.kind == Primitive::Kind::view) {
    Leaf inner = resolve_leaf(graph, p.args[0]);
    if (auto view = apply_view(inner.view, p)) return {inner.base, *view};
  }
  return {id, Strided::contiguous(p.shape)};
}

namespace {

class Analysis {
 public:
  Analysis(const PrimitiveGraph& graph, const std::vector<int>& members)
      : graph_(graph), members_(members.begin(), members.end()) {}

  std::optional<GroupAxes> run() {
    for (int id : members_) {
      for (int arg : graph_.at(id).args) add_value(arg);
      add_value(id);
      if (!constrain(id)) return std::nullopt;
    }
    if (!join_reductions()) return std::nullopt;
    for (auto& [id, dims] : dims_)
      for (auto& dim : dims) dim = space_.resolve(dim);
    if (!distinct()) return std::nullopt;
    find_reduced();
    finish();
    return std::move(result_);
  }

 private:
  const PrimitiveGraph& graph_;
  std::set<int> members_;
  AxisSpace space_;
  std::map<int, std::vector<AtomList>> dims_;
  GroupAxes result_;

  void add_value(int id) {
    if (dims_.count(id)) return;
    auto& dims = dims_[id];
    for (int64_t extent : graph_.at(id).shape) dims.push_back(space_.fresh(extent));
  }

  const Shape& shape(int id) const { return graph_.at(id).shape; }

  AtomList flat(int id) const {
    AtomList result;
    for (auto& dim : dims_.at(id)) result.insert(result.end(), dim.begin(), dim.end());
    return result;
  }

  // Dimensions of `arg` line up with the last ones of `id` where their extents agree.
  bool align(int id, int arg) {
    auto &to = dims_[id], &from = dims_[arg];
    size_t missing = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i)
      if (shape(arg)[i] == shape(id)[missing + i] && !space_.unify(to[missing + i], from[i])) return false;
    return true;
  }

  bool constrain(int id) {
    const Primitive& p = graph_.at(id);
    switch (p.kind) {
      case Primitive::Kind::map:
        return std::all_of(p.args.begin(), p.args.end(), [&](int arg) { return align(id, arg); });
      case Primitive::Kind::reduce:
        return align(id, p.args[0]);
      case Primitive::Kind::gather:
        return align(id, p.args[0]) && align(id, p.args[1]);
      case Primitive::Kind::view:
        return constrain_view(id, p);
      default:
        return false;
    }
  }

  bool constrain_view(int id, const Primitive& p) {
    if (p.view.kind == ViewOp::Kind::reshape) return space_.unify(flat(id), flat(p.args[0]));
    if (p.view.kind == ViewOp::Kind::expand) return align(id, p.args[0]);
    if (p.view.kind == ViewOp::Kind::slice) return false;
    for (size_t i = 0; i < p.view.order.size(); ++i)
      if (!space_.unify(dims_[id][i], dims_[p.args[0]][static_cast<size_t>(p.view.order[i])])) return false;
    return true;
  }

  // A value that has the same atom twice would be read along its diagonal.
  bool distinct() const {
    for (auto& [id, dims] : dims_) {
      AtomList atoms = flat(id);
      std::sort(atoms.begin(), atoms.end());
      if (std::adjacent_find(atoms.begin(), atoms.end()) != atoms.end()) return false;
    }
    return true;
  }

  AtomList reduced_atoms(const Primitive& p) const {
    AtomList atoms;
    for (int axis : p.axes) {
      auto& dim = dims_.at(p.args[0])[static_cast<size_t>(axis)];
      atoms.insert(atoms.end(), dim.begin(), dim.end());
    }
    return space_.resolve(atoms);
  }

  // All reductions run over the same loops: independent ones are joined.
  bool join_reductions() {
    int first = -1;
    for (int id : members_) {
      const Primitive& p = graph_.at(id);
      if (p.kind != Primitive::Kind::reduce) continue;
      if (first < 0) first = id;
      AtomList left = reduced_atoms(graph_.at(first)), right = reduced_atoms(p);
      AtomList sorted_left = left, sorted_right = right;
      std::sort(sorted_left.begin(), sorted_left.end());
      std::sort(sorted_right.begin(), sorted_right.end());
      if (sorted_left != sorted_right && !space_.unify(left, right)) return false;
    }
    return true;
  }

  void find_reduced() {
    for (int id : members_)
      if (graph_.at(id).kind == Primitive::Kind::reduce) result_.reduced = reduced_atoms(graph_.at(id));
    std::sort(result_.reduced.begin(), result_.reduced.end());
  }

  void finish() {
    for (int id : members_) {
      add_extents(id);
      for (int arg : graph_.at(id).args)
        if (graph_.at(id).kind != Primitive::Kind::gather) add_extents(arg);
    }
    for (auto& [id, dims] : dims_)
      if (!members_.count(id)) add_leaf(id);
    result_.dims = std::move(dims_);
  }

  void add_extents(int id) {
    for (auto& dim : dims_.at(id))
      for (int atom : dim) result_.extents[atom] = space_.extent(atom);
  }

  void add_leaf(int id) {
    if (graph_.at(id).kind == Primitive::Kind::constant) return;
    Leaf leaf = resolve_leaf(graph_, id);
    AtomStrides strides;
    for (size_t i = 0; i < leaf.view.sizes.size(); ++i) {
      int64_t stride = leaf.view.strides[i];
      auto& dim = dims_.at(id)[i];
      for (size_t k = dim.size(); k-- > 0;) {
        if (stride != 0) strides[dim[k]] = stride;
        stride *= space_.extent(dim[k]);
      }
    }
    result_.leaf_strides[id] = std::move(strides);
    result_.leaves[id] = std::move(leaf);
  }
};

}  // namespace

std::optional<GroupAxes> analyse_axes(const PrimitiveGraph& graph, const std::vector<int>& members) {
  return Analysis(graph, members).run();
}

}  // namespace tilepilot::agent::builtin
