// A matrix product at the head of the kernel that finishes it: the product of a tile is made in a fragment, where the
// group's maps and row reductions read it, and only the finished result is written.
#pragma once

#include "agent/builtin/writer/kernel_signature.h"
#include "agent/builtin/writer/loop_indices.h"

namespace tilepilot::agent::builtin {

struct ProductTiles {
  int64_t rows = 128, columns = 256, depth = 128;
  int64_t depth_16_bit = 128;  // of operands of 16 bits
  int64_t elements = 32768;    // of a tile with whole rows
  int64_t threads = 128;
  int64_t stages = 2;
  bool exact = false;           // blocks keep these sizes, though they hang over the ends
  bool full_precision = false;  // asks the compiler for it, where the target has products that are less
};

// The product that `group` may finish: one that only the group reads, each element in its own place. -1: none.
int fusable_product(const PrimitiveGraph& graph, const Group& group, const TensorFacts& facts);
// The length of the sums in a product.
int64_t product_depth(const PrimitiveGraph& graph, int product);

// The group's loops as those of the product: the last two are its rows and columns (`row` and `column` of the plan),
// all before them its batches. nullopt: they are others.
std::optional<TilePlan> product_loops(const PrimitiveGraph& graph, const Group& group, int product);
// False: a row that is reduced does not fit a tile.
bool set_product_tiles(TilePlan& loops, const ProductTiles& sizes);

// An operand in memory, in terms of the kernel's loops.
struct ProductOperand {
  std::string tensor;  // the parameter's name
  TensorAccess access;
  int own = 0;               // the loop along the tile's axis that is not summed
  int summed = 0;            // the other, which is no loop of the plan: as one behind its last
  bool depth_first = false;  // [K, rows] in memory and in the tile, else [rows, K]
};
// nullopt: its strides fit no declared shape, or its rows are not side by side along either axis.
std::optional<ProductOperand> describe_operand(const PrimitiveGraph& graph, const TilePlan& loops, int product,
                                               int operand);

class ProductPrologue {
 public:
  // Adds the operands to the front of the signature. nullopt: of an operand that describe_operand refuses, or whose
  // sums end inside a block, with other elements behind them.
  static std::optional<ProductPrologue> make(const PrimitiveGraph& graph, const TilePlan& tiles, int product,
                                             const ProductTiles& sizes, const TensorFacts& facts,
                                             KernelSignature& signature, NamePool& pool);

  const std::string& tile() const { return tile_; }
  std::vector<std::string> allocations(const TilePlan& tiles, const LoopIndices& indices) const;
  std::vector<std::string> lines(const LoopIndices& indices) const;
  // The factory's parameter for the block of the inner length, or empty if it is taken whole.
  std::string block_parameter() const;
  int64_t depth() const { return depth_; }

 private:
  ProductOperand a_, b_;
  std::string tile_;
  int64_t depth_ = 0, depth_block_ = 0, stages_ = 2;
  bool full_precision_ = false;

  bool steps() const { return depth_block_ != depth_; }
  std::string depth_text() const { return steps() ? "block_K" : "K"; }
  std::string tile_shape(const ProductOperand& operand, const LoopIndices& indices) const;
  std::string copy(const ProductOperand& operand, const LoopIndices& indices) const;
};

}  // namespace tilepilot::agent::builtin
