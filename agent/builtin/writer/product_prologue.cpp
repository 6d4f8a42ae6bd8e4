#include "agent/builtin/writer/product_prologue.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::agent::builtin {

int fusable_product(const PrimitiveGraph& graph, const Group& group, const TensorFacts& facts) {
  int product = -1, readers = 0;
  for (auto& [id, leaf] : group.axes.leaves) {
    const Primitive& base = graph.at(leaf.base);
    if (base.kind != Primitive::Kind::product || graph.at(base.args[1]).shape.size() != 2) continue;
    if (leaf.view.offset != 0 || numel(leaf.view.sizes) != numel(base.shape) || !facts.dies_here(leaf.base)) return -1;
    product = leaf.base;
    ++readers;
  }
  return readers == 1 ? product : -1;
}

int64_t product_depth(const PrimitiveGraph& graph, int product) {
  return graph.at(graph.at(product).args[0]).shape.back();
}

std::optional<TilePlan> plan_product_tiles(const PrimitiveGraph& graph, const Group& group, int product,
                                           const ProductTiles& sizes) {
  int64_t columns = graph.at(product).shape.back();
  TilePlan tiles = plan_tiles(graph, group, {.last_axis = columns});
  if (tiles.loops.size() != 2 || tiles.loop(1).extent != columns || tiles.loop(0).reduced) return std::nullopt;
  bool whole_rows = tiles.loop(1).reduced;
  if (whole_rows && columns * 16 > sizes.elements) return std::nullopt;
  tiles.row = 0;
  tiles.column = 1;
  tiles.column_block = whole_rows ? columns : sizes.exact ? sizes.columns : std::min(sizes.columns, columns);
  tiles.row_block =
      sizes.exact ? sizes.rows : pick_block(tiles.loop(0).extent, whole_rows ? sizes.elements / columns : sizes.rows);
  tiles.loops[0].size = "M";
  tiles.loops[1].size = "N";
  tiles.threads = sizes.threads;
  tiles.serial.clear();
  tiles.grid.clear();
  for (int loop : {1, 0})
    if (!tiles.whole(loop)) tiles.grid.push_back(loop);
  return tiles;
}

namespace {

struct Operand {
  int base;
  bool transposed;
};

// A matrix in memory, possibly behind a transpose. Leading axes of the left operand count as rows.
std::optional<Operand> matrix(const PrimitiveGraph& graph, int id) {
  Leaf leaf = resolve_leaf(graph, id);
  const Primitive& base = graph.at(leaf.base);
  auto& sizes = leaf.view.sizes;
  if (leaf.view.offset != 0 || numel(base.shape) != numel(sizes)) return std::nullopt;
  if (leaf.view.strides == contiguous_strides(sizes)) return Operand{leaf.base, false};
  if (sizes.size() == 2 && leaf.view.strides == Shape{1, sizes[0]}) return Operand{leaf.base, true};
  return std::nullopt;
}

}  // namespace

std::optional<ProductPrologue> ProductPrologue::make(const PrimitiveGraph& graph, int product,
                                                     const ProductTiles& sizes, const TensorFacts& facts,
                                                     KernelSignature& signature, NamePool& pool) {
  const Primitive& p = graph.at(product);
  auto a = matrix(graph, p.args[0]), b = matrix(graph, p.args[1]);
  if (!a || a->transposed || !b) return std::nullopt;
  ProductPrologue result;
  result.depth_ = product_depth(graph, product);
  const bool narrow = graph.at(a->base).dtype.find("16") != std::string::npos;
  result.depth_block_ = narrow ? sizes.depth_16_bit : sizes.depth;
  if (!sizes.exact) result.depth_block_ = std::min(result.depth_block_, result.depth_);
  result.stages_ = sizes.stages;
  result.full_precision_ = sizes.full_precision;
  result.a_ = pool.take(facts.name(a->base));
  result.b_ = pool.take(facts.name(b->base));
  result.tile_ = pool.take("product");
  result.b_in_rows_ = b->transposed;
  int64_t columns = p.shape.back(), rows = numel(p.shape) / columns;
  Shape b_shape = b->transposed ? Shape{result.depth_, columns} : Shape{columns, result.depth_};
  auto& parameters = signature.parameters;
  parameters.insert(parameters.begin(), {result.b_, b->transposed ? "(K, N)" : "(N, K)", graph.at(b->base).dtype});
  parameters.insert(parameters.begin(), {result.a_, "(M, K)", graph.at(a->base).dtype});
  signature.arguments.insert(signature.arguments.begin(), {b->base, b_shape});
  signature.arguments.insert(signature.arguments.begin(), {a->base, {rows, result.depth_}});
  return result;
}

std::vector<std::string> ProductPrologue::allocations(const TilePlan& tiles, const LoopIndices& indices) const {
  std::string row = indices.block_size(tiles.row), column = indices.block_size(tiles.column), depth = depth_text();
  return {fmt::format("{}_tile = T.alloc_shared(({}, {}), dtype)", a_, row, depth),
          fmt::format("{}_tile = T.alloc_shared(({}, {}), dtype)", b_, b_in_rows_ ? depth : column,
                      b_in_rows_ ? column : depth),
          fmt::format("{} = T.alloc_fragment(({}, {}), \"float32\")", tile_, row, column)};
}

std::vector<std::string> ProductPrologue::lines(const TilePlan& tiles, const LoopIndices& indices) const {
  std::string row = indices.start(tiles.row), column = indices.start(tiles.column);
  std::string k = steps() ? "k * block_K" : "0", pad = steps() ? "    " : "";
  std::vector<std::string> lines = {fmt::format("T.clear({})", tile_)};
  if (steps()) lines.push_back(fmt::format("for k in T.Pipelined(T.ceildiv(K, block_K), num_stages={}):", stages_));
  lines.push_back(fmt::format("{}T.copy({}[{}, {}], {}_tile)", pad, a_, row, k, a_));
  lines.push_back(
      fmt::format("{}T.copy({}[{}, {}], {}_tile)", pad, b_, b_in_rows_ ? k : column, b_in_rows_ ? column : k, b_));
  lines.push_back(fmt::format("{}T.gemm({}_tile, {}_tile, {}{}{})", pad, a_, b_, tile_,
                              b_in_rows_ ? "" : ", transpose_B=True", full_precision_ ? ", precision=\"fp32\"" : ""));
  return lines;
}

std::string ProductPrologue::block_parameter() const { return steps() ? fmt::format("block_K={}", depth_block_) : ""; }

}  // namespace tilepilot::agent::builtin
