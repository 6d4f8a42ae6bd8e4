#include "agent/builtin/product_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/builtin/expression_writer.h"
#include "agent/builtin/loop_indices.h"

namespace tilepilot::agent::builtin {

namespace {

struct Operand {
  int base;
  bool transposed;  // lies in memory as [K, N]: the product's own form is [N, K]
};

// A matrix in memory, possibly behind a transpose.
std::optional<Operand> matrix(const PrimitiveGraph& graph, int id) {
  Leaf leaf = resolve_leaf(graph, id);
  const Primitive& base = graph.at(leaf.base);
  if (leaf.view.sizes.size() != 2 || leaf.view.offset != 0 || numel(base.shape) != numel(leaf.view.sizes)) return {};
  auto& sizes = leaf.view.sizes;
  if (leaf.view.strides == Shape{sizes[1], 1}) return Operand{leaf.base, false};
  if (leaf.view.strides == Shape{1, sizes[0]}) return Operand{leaf.base, true};
  return {};
}

class ProductWriter {
 public:
  ProductWriter(const PrimitiveGraph& graph, const Group& group, int product, const ProductTiles& sizes)
      : graph_(graph),
        group_(group),
        product_(product),
        sizes_(sizes),
        tiles_(plan_tiles(graph, group, {})),
        expressions_(graph, [this](int leaf, const std::string&) { return load(leaf); }) {
    for (const char* name : {"i", "j", "k", "bx", "by", "dtype", "T", "main", "M", "N", "K"}) pool_.take(name);
    expressions_.set_leaf_test([this](int id) { return group_.axes.leaves.count(id) > 0; });
  }

  std::optional<KernelText> run(const TensorFacts& facts) {
    if (!set_tiles()) return std::nullopt;
    LoopIndices indices(tiles_);
    indices_ = &indices;
    auto signature = make_signature({graph_, group_, tiles_, facts, {}, product_}, pool_);
    auto a = matrix(graph_, graph_.at(product_).args[0]), b = matrix(graph_, graph_.at(product_).args[1]);
    if (!signature || !a || a->transposed || !b) return std::nullopt;
    signature_ = std::move(*signature);
    add_operands(*a, *b, facts);
    write_body(b->transposed);
    return text();
  }

 private:
  const PrimitiveGraph& graph_;
  const Group& group_;
  int product_;
  ProductTiles sizes_;
  TilePlan tiles_;
  ExpressionWriter expressions_;
  NamePool pool_;
  KernelSignature signature_;
  const LoopIndices* indices_ = nullptr;
  std::string a_, b_;
  std::vector<std::string> lines_;

  int64_t depth() const { return graph_.at(graph_.at(product_).args[0]).shape.back(); }

  // Loops must be the product's rows and columns.
  bool set_tiles() {
    const Primitive& p = graph_.at(product_);
    if (tiles_.loops.size() != 2 || tiles_.loop(1).extent != p.shape.back()) return false;
    tiles_.row = 0;
    tiles_.column = 1;
    tiles_.row_block = std::min(sizes_.rows, tiles_.loop(0).extent);
    tiles_.column_block = std::min(sizes_.columns, tiles_.loop(1).extent);
    tiles_.grid.clear();
    for (int loop : {1, 0})
      if (!tiles_.whole(loop)) tiles_.grid.push_back(loop);
    tiles_.loops[0].size = "M";
    tiles_.loops[1].size = "N";
    return true;
  }

  std::string load(int leaf) const {
    if (group_.axes.leaves.at(leaf).base == product_) return "product[i, j]";
    return indices_->element(signature_.name_of.at(leaf), signature_.access_of.at(leaf));
  }

  void add_operands(const Operand& a, const Operand& b, const TensorFacts& facts) {
    a_ = pool_.take(facts.name(a.base));
    b_ = pool_.take(facts.name(b.base));
    const Primitive& p = graph_.at(product_);
    int64_t rows = tiles_.loop(0).extent, columns = p.shape.back();
    Shape b_shape = b.transposed ? Shape{depth(), columns} : Shape{columns, depth()};
    auto& parameters = signature_.parameters;
    auto& arguments = signature_.arguments;
    parameters.insert(parameters.begin(), {b_, b.transposed ? "(K, N)" : "(N, K)", graph_.at(b.base).dtype});
    parameters.insert(parameters.begin(), {a_, "(M, K)", graph_.at(a.base).dtype});
    arguments.insert(arguments.begin(), {b.base, b_shape});
    arguments.insert(arguments.begin(), {a.base, {rows, depth()}});
  }

  std::string depth_block() const { return sizes_.depth < depth() ? "block_K" : "K"; }

  void write_body(bool b_in_rows) {
    std::string row = indices_->block_size(0), column = indices_->block_size(1), depth = depth_block();
    std::string row_start = indices_->start(0), column_start = indices_->start(1);
    std::string k = sizes_.depth < this->depth() ? "k * block_K" : "0";
    auto add = [&](std::string line) { lines_.push_back(std::move(line)); };
    add(fmt::format("{}_tile = T.alloc_shared(({}, {}), dtype)", a_, row, depth));
    add(fmt::format("{}_tile = T.alloc_shared(({}, {}), dtype)", b_, b_in_rows ? depth : column,
                    b_in_rows ? column : depth));
    add(fmt::format("product = T.alloc_fragment(({}, {}), \"float32\")", row, column));
    add("T.clear(product)");
    bool steps = sizes_.depth < this->depth();
    std::string pad = steps ? "    " : "";
    if (steps) add("for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):");
    add(fmt::format("{}T.copy({}[{}, {}], {}_tile)", pad, a_, row_start, k, a_));
    add(fmt::format("{}T.copy({}[{}, {}], {}_tile)", pad, b_, b_in_rows ? k : column_start,
                    b_in_rows ? column_start : k, b_));
    add(fmt::format("{}T.gemm({}_tile, {}_tile, product{})", pad, a_, b_, b_in_rows ? "" : ", transpose_B=True"));
    add(fmt::format("for i, j in T.Parallel({}, {}):", row, column));
    for (int id : expressions_.repeated(group_.outputs)) {
      const Primitive& p = graph_.at(id);
      bool leaf = group_.axes.leaves.count(id) > 0;
      std::string name = pool_.take(leaf ? "value" : p.hint.empty() ? std::string(info(p.op).name) : p.hint);
      add(fmt::format("    {} = {}", name, expressions_.write(id)));
      expressions_.name(id, name);
    }
    for (int id : group_.outputs)
      add(fmt::format("    {} = {}", indices_->element(signature_.name_of.at(id), signature_.access_of.at(id)),
                      expressions_.write(id)));
  }

  KernelText text() const {
    KernelText text;
    text.parameters = "M, N, K";
    text.sizes = {tiles_.loop(0).extent, tiles_.loop(1).extent, depth()};
    for (int loop : {0, 1})
      if (!tiles_.whole(loop))
        text.parameters += fmt::format(", {}={}", indices_->block_size(loop), tiles_.block(loop));
    if (sizes_.depth < depth()) text.parameters += fmt::format(", block_K={}", sizes_.depth);
    text.parameters += fmt::format(", dtype=\"{}\"", signature_.dtype);
    text.body = frame_program(signature_, indices_->launch(), lines_);
    text.arguments = signature_.arguments;
    text.results = signature_.results;
    return text;
  }
};

}  // namespace

int fusable_product(const PrimitiveGraph& graph, const Group& group, const TensorFacts& facts) {
  if (group.has_reduction()) return -1;
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

std::optional<KernelText> write_product_kernel(const PrimitiveGraph& graph, const Group& group, int product,
                                               const ProductTiles& tiles, const TensorFacts& facts) {
  return ProductWriter(graph, group, product, tiles).run(facts);
}

}  // namespace tilepilot::agent::builtin
