#include "agent/builtin/writer/product_prologue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilepilot::agent::builtin {

int fusable_product(const PrimitiveGraph& graph, const Group& group, const TensorFacts& facts) {
  int product = -1, readers = 0;
  for (auto& [id, leaf] : group.axes.leaves) {
    const Primitive& base = graph.at(leaf.base);
    if (base.kind != Primitive::Kind::product) continue;
    if (leaf.view.offset != 0 || numel(leaf.view.sizes) != numel(base.shape) || !facts.dies_here(leaf.base)) return -1;
    product = leaf.base;
    ++readers;
  }
  return readers == 1 ? product : -1;
}

int64_t product_depth(const PrimitiveGraph& graph, int product) {
  return graph.at(graph.at(product).args[0]).shape.back();
}

namespace {

bool is_batched(const PrimitiveGraph& graph, const Primitive& product) {
  return graph.at(product.args[1]).shape.size() > 2;
}

// The plan's strides of the product itself.
const Shape* product_strides(const PrimitiveGraph& graph, const TilePlan& loops, int product) {
  for (auto& [id, strides] : loops.strides)
    if (resolve_leaf(graph, id).base == product) return &strides;
  return nullptr;
}

}  // namespace

namespace {

// The group's loops, which do not merge where `cuts` says.
std::optional<TilePlan> loops_cut_at(const PrimitiveGraph& graph, const Group& group, int product, const Shape& cuts) {
  const Primitive& p = graph.at(product);
  TilePlan plan = plan_tiles(graph, group, {.cuts = cuts});
  const int count = static_cast<int>(plan.loops.size());
  const Shape* strides = product_strides(graph, plan, product);
  if (count < 2 || !strides || plan.loops.back().extent != p.shape.back()) return std::nullopt;
  if (is_batched(graph, p) && plan.loop(count - 2).extent != p.shape[p.shape.size() - 2]) return std::nullopt;
  // In memory as the product is.
  int64_t below = 1;
  for (int i = count - 1; i >= 0; --i) {
    if (strides->at(static_cast<size_t>(i)) != below || (i < count - 1 && plan.loop(i).reduced)) return std::nullopt;
    below *= plan.loop(i).extent;
  }
  plan.row = count - 2;
  plan.column = count - 1;
  static const char* const kBatches[] = {"B", "C", "D", "E", "F"};
  for (int i = 0; i < count - 2; ++i) plan.loops[static_cast<size_t>(i)].size = kBatches[i % 5];
  plan.loops[static_cast<size_t>(plan.row)].size = "M";
  plan.loops[static_cast<size_t>(plan.column)].size = "N";
  return plan;
}

}  // namespace

std::optional<TilePlan> product_loops(const PrimitiveGraph& graph, const Group& group, int product) {
  const Shape& shape = graph.at(product).shape;
  Shape cuts = {shape.back()};
  if (is_batched(graph, graph.at(product))) cuts.push_back(cuts.back() * shape[shape.size() - 2]);
  // All batches as one loop, or as many as there are: heads lie between rows and columns.
  for (;;) {
    auto plan = loops_cut_at(graph, group, product, cuts);
    if (plan && describe_operand(graph, *plan, product, 0) && describe_operand(graph, *plan, product, 1)) return plan;
    if (cuts.size() == 1 || cuts.size() >= shape.size()) return std::nullopt;
    while (cuts.size() < shape.size()) cuts.push_back(cuts.back() * shape[shape.size() - 1 - cuts.size()]);
  }
}

bool set_product_tiles(TilePlan& loops, const ProductTiles& sizes) {
  const int64_t columns = loops.loop(loops.column).extent, rows = loops.loop(loops.row).extent;
  const bool whole_rows = loops.loop(loops.column).reduced;
  if (whole_rows && columns * 16 > sizes.elements) return false;
  loops.column_block = whole_rows ? columns : sizes.exact ? sizes.columns : std::min(sizes.columns, columns);
  loops.row_block = sizes.exact ? sizes.rows : pick_block(rows, whole_rows ? sizes.elements / columns : sizes.rows);
  loops.threads = sizes.threads;
  loops.serial.clear();
  loops.grid.clear();
  for (int i = loops.column; i >= 0; --i)
    if (!loops.whole(i)) loops.grid.push_back(i);
  return true;
}

namespace {

// Memory between the steps of a loop that takes `count` steps of `unit` elements each through axes of these sizes,
// counted row-major. nullopt: it differs.
std::optional<int64_t> stride_along(const Shape& sizes, const Shape& strides, int64_t unit, int64_t count) {
  std::optional<int64_t> step;
  int64_t below = 1;
  for (size_t axis = sizes.size(); axis-- > 0; below *= sizes[axis]) {
    const int64_t end = below * sizes[axis];
    if (sizes[axis] == 1 || end <= unit) continue;
    if (below >= unit * count) break;
    if (!step) {
      if (unit % below != 0 || end % unit != 0) return std::nullopt;
      step = strides[axis] * (unit / below);
    } else if (strides[axis] * unit != *step * below) {
      return std::nullopt;
    }
  }
  return step.value_or(0);
}

}  // namespace

std::optional<ProductOperand> describe_operand(const PrimitiveGraph& graph, const TilePlan& loops, int product,
                                               int operand) {
  const Primitive& p = graph.at(product);
  const Shape* along = product_strides(graph, loops, product);
  if (!along) return std::nullopt;
  const Leaf leaf = resolve_leaf(graph, p.args[static_cast<size_t>(operand)]);
  const int64_t columns = p.shape.back();
  ProductOperand result;
  result.own = operand == 0 ? loops.row : loops.column;
  result.summed = static_cast<int>(loops.loops.size());
  // The axes that the operand shares with the product: of the left one all but the last, of the right one the batches.
  const size_t shared = leaf.view.sizes.size() - (operand == 0 ? 1 : 2);
  const Shape sizes(leaf.view.sizes.begin(), leaf.view.sizes.begin() + static_cast<int64_t>(shared));
  const Shape strides(leaf.view.strides.begin(), leaf.view.strides.begin() + static_cast<int64_t>(shared));
  const int64_t elements = operand == 0 ? columns : columns * p.shape[p.shape.size() - 2];
  TilePlan with_depth = loops;
  with_depth.loops.push_back({.extent = leaf.view.sizes.back(), .atoms = {}, .size = "K"});
  Shape memory;
  for (int i = 0; i < result.summed; ++i) {
    std::optional<int64_t> stride = 0;
    if (operand == 0 ? i != loops.column : i < loops.row)
      stride = stride_along(sizes, strides, (*along)[static_cast<size_t>(i)] / elements, loops.loop(i).extent);
    else if (i == result.own)
      stride = leaf.view.strides[shared];
    if (!stride) return std::nullopt;
    memory.push_back(*stride);
  }
  memory.push_back(leaf.view.strides.back());
  auto access = describe_access(with_depth, memory, leaf.view.offset, numel(graph.at(leaf.base).shape));
  if (!access) return std::nullopt;
  result.access = std::move(*access);
  const auto place = [&](int loop) {
    return std::find_if(result.access.axes.begin(), result.access.axes.end(),
                        [&](auto& axis) { return axis.loop == loop; });
  };
  const auto own = place(result.own), summed = place(result.summed), end = result.access.axes.end();
  if (own == end || summed == end || (own + 1 != end && summed + 1 != end)) return std::nullopt;
  result.depth_first = summed < own;
  return result;
}

std::optional<ProductPrologue> ProductPrologue::make(const PrimitiveGraph& graph, const TilePlan& tiles, int product,
                                                     const ProductTiles& sizes, const TensorFacts& facts,
                                                     KernelSignature& signature, NamePool& pool) {
  const Primitive& p = graph.at(product);
  ProductPrologue result;
  result.depth_ = product_depth(graph, product);
  const auto element = [&](size_t operand) { return graph.at(resolve_leaf(graph, p.args[operand]).base).dtype; };
  result.depth_block_ = element(0).find("16") != std::string::npos ? sizes.depth_16_bit : sizes.depth;
  if (!sizes.exact) result.depth_block_ = std::min(result.depth_block_, result.depth_);
  result.stages_ = sizes.stages;
  result.full_precision_ = sizes.full_precision;
  for (const size_t operand : {1u, 0u}) {
    auto described = describe_operand(graph, tiles, product, static_cast<int>(operand));
    if (!described) return std::nullopt;
    for (auto& axis : described->access.axes) {
      const bool others_behind = axis.offset + result.depth_ < axis.extent;
      if (axis.loop == described->summed && others_behind && result.depth_ % result.depth_block_ != 0)
        return std::nullopt;
    }
    (operand == 0 ? result.a_ : result.b_) = std::move(*described);
  }
  result.a_.tensor = pool.take(facts.name(resolve_leaf(graph, p.args[0]).base));
  result.b_.tensor = pool.take(facts.name(resolve_leaf(graph, p.args[1]).base));
  result.tile_ = pool.take("product");
  for (const size_t operand : {1u, 0u}) {
    const ProductOperand& described = operand == 0 ? result.a_ : result.b_;
    signature.parameters.insert(signature.parameters.begin(),
                                {described.tensor, described.access.shape_text(), element(operand)});
    signature.arguments.insert(signature.arguments.begin(),
                               {resolve_leaf(graph, p.args[operand]).base, described.access.shape()});
  }
  return result;
}

std::string ProductPrologue::tile_shape(const ProductOperand& operand, const LoopIndices& indices) const {
  const std::string own = indices.block_size(operand.own);
  return operand.depth_first ? depth_text() + ", " + own : own + ", " + depth_text();
}

// A box of the memory by its start; by its ranges where batches lie between the tile's axes.
std::string ProductPrologue::copy(const ProductOperand& operand, const LoopIndices& indices) const {
  const auto& axes = operand.access.axes;
  const auto in_tile = [&](const AccessAxis& axis) { return axis.loop == operand.own || axis.loop == operand.summed; };
  const bool box = in_tile(axes[axes.size() - 2]);
  std::vector<std::string> places;
  for (auto& axis : axes) {
    const bool summed = axis.loop == operand.summed;
    std::string at = summed ? (steps() ? "k * block_K" : "0") : axis.loop < 0 ? "0" : indices.start(axis.loop);
    if (!axis.start.empty()) at = at == "0" ? axis.start : axis.start + " + " + at;
    if (!box && in_tile(axis)) {
      const std::string size = summed ? depth_text() : indices.block_size(axis.loop);
      at = at == "0" ? ":" + size : fmt::format("{0} : {0} + {1}", at, size);
    }
    places.push_back(at);
  }
  return fmt::format("T.copy({0}[{1}], {0}_tile)", operand.tensor, fmt::join(places, ", "));
}

std::vector<std::string> ProductPrologue::allocations(const TilePlan& tiles, const LoopIndices& indices) const {
  std::vector<std::string> lines;
  for (const ProductOperand* operand : {&a_, &b_})
    lines.push_back(
        fmt::format("{}_tile = T.alloc_shared(({}), dtype)", operand->tensor, tile_shape(*operand, indices)));
  lines.push_back(fmt::format("{} = T.alloc_fragment(({}, {}), \"float32\")", tile_, indices.block_size(tiles.row),
                              indices.block_size(tiles.column)));
  return lines;
}

std::vector<std::string> ProductPrologue::lines(const LoopIndices& indices) const {
  const std::string pad = steps() ? "    " : "";
  std::vector<std::string> lines = {fmt::format("T.clear({})", tile_)};
  if (steps()) lines.push_back(fmt::format("for k in T.Pipelined(T.ceildiv(K, block_K), num_stages={}):", stages_));
  for (const ProductOperand* operand : {&a_, &b_}) lines.push_back(pad + copy(*operand, indices));
  lines.push_back(fmt::format("{}T.gemm({}_tile, {}_tile, {}{}{}{})", pad, a_.tensor, b_.tensor, tile_,
                              a_.depth_first ? ", transpose_A=True" : "", b_.depth_first ? "" : ", transpose_B=True",
                              full_precision_ ? ", precision=\"fp32\"" : ""));
  return lines;
}

std::string ProductPrologue::block_parameter() const { return steps() ? fmt::format("block_K={}", depth_block_) : ""; }

}  // namespace tilepilot::agent::builtin
