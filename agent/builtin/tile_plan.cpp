#include "agent/builtin/tile_plan.h"

#include <algorithm>

#include "agent/builtin/gpu_tiles.h"

namespace tilepilot::agent::builtin {

std::vector<int> TilePlan::stepped() const {
  std::vector<int> result = serial;
  for (int index : {row, column})
    if (index >= 0 && loop(index).reduced && !whole(index)) result.push_back(index);
  return result;
}

bool TilePlan::resident() const { return stepped().empty(); }

int64_t TilePlan::steps(int index) const { return (loop(index).extent + block(index) - 1) / block(index); }

std::vector<int> TilePlan::ragged() const {
  std::vector<int> result;
  for (int index = 0; index < static_cast<int>(loops.size()); ++index) {
    const int64_t at_once = block(index) * (index == split_loop ? split : 1);
    if (loop(index).reduced && loop(index).extent % at_once != 0) result.push_back(index);
  }
  return result;
}

int64_t TilePlan::blocks() const {
  int64_t count = split;
  for (int index = 0; index < static_cast<int>(loops.size()); ++index)
    if (!loop(index).reduced) count *= steps(index);
  return count;
}

int64_t pick_block(int64_t extent, int64_t limit) {
  if (extent <= limit) return extent;
  int64_t best = 1;
  for (int64_t block = limit; block >= 1 && best == 1; --block)
    if (extent % block == 0) best = block;
  return best * 4 >= limit ? best : limit;
}

namespace {

AtomStrides output_strides(const PrimitiveGraph& graph, const Group& group, int id) {
  AtomStrides result;
  Shape strides = contiguous_strides(graph.at(id).shape);
  auto& dims = group.axes.dims.at(id);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t stride = strides[i];
    for (size_t k = dims[i].size(); k-- > 0;) {
      result[dims[i][k]] = stride;
      stride *= group.axes.extents.at(dims[i][k]);
    }
  }
  return result;
}

class TilePlanner {
 public:
  TilePlanner(const PrimitiveGraph& graph, const Group& group, const TileSizes& sizes)
      : graph_(graph), group_(group), sizes_(sizes) {
    for (auto& [id, strides] : group.axes.leaf_strides) tensors_[id] = strides;
    for (int id : group.outputs) tensors_[id] = output_strides(graph, group, id);
  }

  TilePlan run() {
    make_loops();
    if (plan_.loops.empty()) plan_.loops.push_back({});
    if (sizes_.gpu)
      choose_gpu_tiles(plan_, graph_, group_, *sizes_.gpu, sizes_.choice);
    else
      choose_tiles();
    place_rest();
    name_sizes();
    return std::move(plan_);
  }

 private:
  const PrimitiveGraph& graph_;
  const Group& group_;
  TileSizes sizes_;
  std::map<int, AtomStrides> tensors_;
  TilePlan plan_;

  static int64_t stride(const AtomStrides& strides, int atom) {
    auto found = strides.find(atom);
    return found == strides.end() ? 0 : found->second;
  }

  // The tensor that varies along most atoms gives the order, so that its memory is read in order.
  AtomList ordered_atoms() const {
    const AtomStrides* main = nullptr;
    for (auto& [id, strides] : tensors_)
      if (!main || strides.size() > main->size()) main = &strides;
    AtomList atoms;
    for (auto& [atom, extent] : group_.axes.extents) atoms.push_back(atom);
    std::stable_sort(atoms.begin(), atoms.end(), [&](int a, int b) {
      int64_t sa = stride(*main, a), sb = stride(*main, b);
      if ((sa == 0) != (sb == 0)) return sa == 0;
      return sa > sb;
    });
    return atoms;
  }

  bool reduced(int atom) const {
    return std::binary_search(group_.axes.reduced.begin(), group_.axes.reduced.end(), atom);
  }

  bool merges(int major, int minor) const {
    if (reduced(major) != reduced(minor)) return false;
    return std::all_of(tensors_.begin(), tensors_.end(), [&](auto& tensor) {
      return stride(tensor.second, major) == stride(tensor.second, minor) * group_.axes.extents.at(minor);
    });
  }

  void make_loops() {
    int64_t left = 1;  // elements of the atoms from here on
    for (auto& [atom, extent] : group_.axes.extents) left *= extent;
    for (int atom : ordered_atoms()) {
      const bool cut = std::count(sizes_.cuts.begin(), sizes_.cuts.end(), left) > 0;
      bool joins = !plan_.loops.empty() && !cut && merges(plan_.loops.back().atoms.back(), atom);
      left /= group_.axes.extents.at(atom);
      if (!joins) plan_.loops.push_back({.reduced = reduced(atom)});
      plan_.loops.back().atoms.push_back(atom);
      plan_.loops.back().extent *= group_.axes.extents.at(atom);
    }
    for (auto& [id, strides] : tensors_) {
      Shape& along = plan_.strides[id];
      for (auto& loop : plan_.loops) along.push_back(stride(strides, loop.atoms.back()));
    }
    if (plan_.loops.empty())
      for (auto& [id, strides] : tensors_) plan_.strides[id] = {0};
  }

  void choose_tiles() {
    bool any_reduced = std::any_of(plan_.loops.begin(), plan_.loops.end(), [](auto& loop) { return loop.reduced; });
    if (!any_reduced)
      plan_elementwise();
    else if (plan_.loops.back().reduced)
      plan_rows();
    else
      plan_columns();
  }

  int last_loop(bool reduced, int before) const {
    for (int i = before - 1; i >= 0; --i)
      if (plan_.loop(i).reduced == reduced) return i;
    return -1;
  }

  int64_t kept_blocks_beside(int tiled) const {
    int64_t count = 1;
    for (int i = 0; i < static_cast<int>(plan_.loops.size()); ++i)
      if (i != tiled && !plan_.loop(i).reduced && !plan_.in_tile(i)) count *= plan_.loop(i).extent;
    return count;
  }

  // A block of a kept loop that fills the tile but leaves enough blocks for all threads.
  int64_t kept_block(int index, int64_t limit) const {
    const int64_t extent = plan_.loop(index).extent;
    const int64_t enough = extent * kept_blocks_beside(index) / sizes_.enough_blocks;
    return pick_block(extent, std::clamp<int64_t>(enough, 1, limit));
  }

  void set_row(int index, int64_t block) {
    plan_.row = index;
    plan_.row_block = block;
  }
  void set_column(int index, int64_t block) {
    plan_.column = index;
    plan_.column_block = block;
  }

  void plan_elementwise() {
    int last = static_cast<int>(plan_.loops.size()) - 1;
    if (last == 0) return set_column(0, kept_block(0, sizes_.elements));
    set_column(last, pick_block(plan_.loop(last).extent, sizes_.longest_line));
    set_row(last - 1, kept_block(last - 1, std::max<int64_t>(1, sizes_.elements / plan_.column_block)));
  }

  void plan_rows() {
    int last = static_cast<int>(plan_.loops.size()) - 1;
    int64_t extent = plan_.loop(last).extent;
    set_column(last, extent <= sizes_.longest_row ? extent : pick_block(extent, sizes_.elements));
    int other = last_loop(true, last);
    int64_t room = std::max<int64_t>(1, sizes_.elements / plan_.column_block);
    if (other >= 0) return set_row(other, pick_block(plan_.loop(other).extent, room));
    int kept = last_loop(false, last);
    if (kept >= 0) set_row(kept, kept_block(kept, std::max<int64_t>(1, room / 2)));
  }

  void plan_columns() {
    int last = static_cast<int>(plan_.loops.size()) - 1;
    int64_t width = kept_block(last, 512);
    set_column(last, std::max(width, std::min<int64_t>(64, plan_.loop(last).extent)));
    int other = last_loop(true, last);
    set_row(other, pick_block(plan_.loop(other).extent, std::max<int64_t>(1, sizes_.elements / plan_.column_block)));
  }

  void place_rest() {
    for (int i = static_cast<int>(plan_.loops.size()) - 1; i >= 0; --i) {
      bool reduced = plan_.loop(i).reduced;
      if (!reduced && !plan_.whole(i)) plan_.grid.push_back(i);
      if (reduced && !plan_.in_tile(i)) plan_.serial.insert(plan_.serial.begin(), i);
    }
  }

  void name_sizes() {
    static const char* const kGridNames[] = {"B", "C", "D", "E", "F"};
    static const char* const kSerialNames[] = {"K", "L", "P", "Q"};
    size_t grid = 0, serial = 0;
    for (int i = 0; i < static_cast<int>(plan_.loops.size()); ++i) {
      auto& loop = plan_.loops[static_cast<size_t>(i)];
      if (i == plan_.row)
        loop.size = "M";
      else if (i == plan_.column)
        loop.size = "N";
      else
        loop.size = loop.reduced ? kSerialNames[serial++ % 4] : kGridNames[grid++ % 5];
    }
  }
};

}  // namespace

TilePlan plan_tiles(const PrimitiveGraph& graph, const Group& group, const TileSizes& sizes) {
  return TilePlanner(graph, group, sizes).run();
}

}  // namespace tilepilot::agent::builtin
