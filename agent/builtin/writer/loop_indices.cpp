#include "agent/builtin/writer/loop_indices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace tilepilot::agent::builtin {

LoopIndices::LoopIndices(const TilePlan& tiles)
    : tiles_(tiles), block_variable_(tiles.loops.size()), serial_variable_(tiles.loops.size()) {
  name_grid();
  name_serial();
}

// Three launch axes at most: loops beyond share the last one.
void LoopIndices::name_grid() {
  static const char* const kNames[] = {"bx", "by", "bz"};
  std::string below = "";  // product of the sizes that share the last axis with this one
  for (size_t i = 0; i < tiles_.grid.size(); ++i) {
    int loop = tiles_.grid[i];
    const std::string& size = tiles_.loop(loop).size;
    std::string extent = tiles_.in_tile(loop) ? fmt::format("T.ceildiv({}, {})", size, block_size(loop)) : size;
    bool shares = i >= 2 && tiles_.grid.size() > 3;
    auto& variable = block_variable_[static_cast<size_t>(loop)];
    if (!shares) {
      variable = kNames[i];
      grid_extents_.push_back(extent);
      continue;
    }
    variable = below.empty() ? fmt::format("bz % {}", extent) : fmt::format("bz // ({}) % {}", below, extent);
    below = below.empty() ? extent : below + " * " + extent;
  }
  if (!below.empty()) grid_extents_.push_back(below);
  if (tiles_.split == 1) return;
  assert(grid_extents_.size() < 3);
  part_ = kNames[grid_extents_.size()];
  grid_extents_.push_back("split");
}

void LoopIndices::name_serial() {
  static const char* const kNames[] = {"k", "l", "p", "q"};
  auto add = [&](int loop) {
    const std::string variable = kNames[serial_.size() % 4], &size = tiles_.loop(loop).size;
    const bool shared = loop == tiles_.split_loop;
    std::string at_once = tiles_.in_tile(loop) ? block_size(loop) : "";
    if (shared) at_once += at_once.empty() ? "split" : " * split";
    serial_.push_back({loop, variable, at_once.empty() ? size : fmt::format("T.ceildiv({}, {})", size, at_once)});
    auto& index = serial_variable_[static_cast<size_t>(loop)];
    index = shared ? fmt::format("{} * split + {}", variable, part_) : variable;
    if (shared && tiles_.in_tile(loop)) index = "(" + index + ")";
  };
  for (int loop : tiles_.stepped()) add(loop);
}

std::string LoopIndices::launch() const {
  static const char* const kVariables[] = {"bx", "(bx, by)", "(bx, by, bz)"};
  if (grid_extents_.empty()) return fmt::format("T.Kernel(1, threads={}) as bx", tiles_.threads);
  return fmt::format("T.Kernel({}, threads={}) as {}", fmt::join(grid_extents_, ", "), tiles_.threads,
                     kVariables[grid_extents_.size() - 1]);
}

std::string LoopIndices::block_size(int loop) const {
  if (tiles_.whole(loop)) return tiles_.loop(loop).size;
  return "block_" + tiles_.loop(loop).size;
}

std::string LoopIndices::tile_variable(int loop) const { return loop == tiles_.row ? "i" : "j"; }

std::string LoopIndices::start(int loop) const {
  auto at = static_cast<size_t>(loop);
  std::string outer = block_variable_[at].empty() ? serial_variable_[at] : block_variable_[at];
  if (!tiles_.in_tile(loop)) return outer;
  if (tiles_.whole(loop)) return "0";
  return fmt::format("{} * {}", outer, block_size(loop));
}

std::string LoopIndices::index(int loop) const {
  std::string outer = start(loop);
  if (!tiles_.in_tile(loop)) return outer;
  return outer == "0" ? tile_variable(loop) : outer + " + " + tile_variable(loop);
}

std::string LoopIndices::index_at(int loop, const std::string& step) const {
  const auto serial = std::find_if(serial_.begin(), serial_.end(), [&](auto& one) { return one.loop == loop; });
  std::string text = index(loop);
  return text.replace(text.find(serial->variable), serial->variable.size(), step);
}

namespace {

std::string shifted(const AccessAxis& axis, const std::string& index) {
  if (axis.loop < 0) return axis.start.empty() ? "0" : axis.start;
  if (axis.start.empty()) return index;
  return index == "0" ? axis.start : axis.start + " + " + index;
}

}  // namespace

std::string LoopIndices::element(const std::string& tensor, const TensorAccess& access, const std::string& last) const {
  std::vector<std::string> parts;
  for (auto& axis : access.axes) parts.push_back(shifted(axis, axis.loop < 0 ? "0" : index(axis.loop)));
  if (!last.empty()) parts.back() = last;
  return fmt::format("{}[{}]", tensor, fmt::join(parts, ", "));
}

std::string LoopIndices::tile_start(const std::string& tensor, const TensorAccess& access) const {
  std::vector<std::string> parts;
  for (auto& axis : access.axes) parts.push_back(shifted(axis, axis.loop < 0 ? "0" : start(axis.loop)));
  return fmt::format("{}[{}]", tensor, fmt::join(parts, ", "));
}

bool LoopIndices::is_box(const TensorAccess& access) const {
  size_t count = access.axes.size(), tile_axes = tiles_.row >= 0 ? 2 : 1;
  if (count < tile_axes || access.axes[count - 1].loop != tiles_.column) return false;
  return tile_axes == 1 || access.axes[count - 2].loop == tiles_.row;
}

std::string LoopIndices::tile_shape() const {
  std::string column = block_size(tiles_.column);
  return tiles_.row < 0 ? column : block_size(tiles_.row) + ", " + column;
}

std::string LoopIndices::tile_variables() const { return tiles_.row < 0 ? "j" : "i, j"; }

std::string LoopIndices::statistic_size() const {
  for (int loop : {tiles_.row, tiles_.column})
    if (loop >= 0 && !tiles_.loop(loop).reduced) return block_size(loop);
  return "1";
}

std::string LoopIndices::statistic_index() const {
  for (int loop : {tiles_.row, tiles_.column})
    if (loop >= 0 && !tiles_.loop(loop).reduced) return tile_variable(loop);
  return "0";
}

std::string LoopIndices::statistic_shape() const {
  std::vector<std::string> sizes;
  for (auto& loop : tiles_.loops)
    if (!loop.reduced && !loop.atoms.empty()) sizes.push_back(loop.size);
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::string LoopIndices::statistic_place() const {
  std::vector<std::string> places;
  for (int loop = 0; loop < static_cast<int>(tiles_.loops.size()); ++loop)
    if (!tiles_.loop(loop).reduced && !tiles_.loop(loop).atoms.empty()) places.push_back(index(loop));
  return fmt::format("{}", fmt::join(places, ", "));
}

}  // namespace tilepilot::agent::builtin
