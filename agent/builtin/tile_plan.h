// How a group's loops become a grid of tiles: which loops are blocks of the launch, which lie in the tile, which are
// stepped through. Good sizes are those of TileSizes for a processor, and of the compiler's model for a GPU
// (gpu_tiles.h); the written kernel takes them as arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/builtin/grouping.h"
#include "compiler/targets/gpu/estimate/tiles.h"

namespace tilepilot::agent::builtin {

// Neighbouring atoms that every tensor of the group walks through as one.
struct LoopAxis {
  int64_t extent = 1;
  bool reduced = false;
  AtomList atoms;    // major to minor
  std::string size;  // its name in the kernel: "M", "N", ...
};

struct TileSizes {
  int64_t elements = 8192;                        // of a tile
  int64_t longest_row = 16384;                    // a row that is reduced is held whole up to this length
  int64_t longest_line = 16384;                   // of a tile in which nothing is reduced
  int64_t enough_blocks = 16;                     // to keep the machine busy
  Shape cuts = {};                                // elements of the loops after a place where loops do not merge
  std::optional<targets::gpu::Machine> gpu = {};  // whose model says the sizes, instead of the numbers above
  size_t choice = 0;                              // of the model's ranking; 0: the best
};

struct TilePlan {
  std::vector<LoopAxis> loops;  // major to minor
  int row = -1, column = -1;    // loops along the tile's axes; -1: the tile has no such axis
  int64_t row_block = 1, column_block = 1;
  int64_t threads = 128;  // of a block
  // If both axes are reduced: rows are added up first, which threads do with values of their own.
  bool rows_first = false;
  // Blocks that share each reduction: of the steps along `split_loop`, a reduced loop, a block takes each `split`-th.
  int split_loop = -1;
  int64_t split = 1;
  bool one_pass = false;    // pairs of reductions over rows that do not stay in a tile (one_pass.h)
  std::vector<int> grid;    // kept loops with a block index, fastest first; blocks that share a reduction are one more
  std::vector<int> serial;  // reduced loops outside the tile, outermost first
  // Strides of each tensor (leaf or output) along each loop, in elements.
  std::map<int, Shape> strides;

  const LoopAxis& loop(int index) const { return loops[static_cast<size_t>(index)]; }
  int64_t block(int index) const { return index == row ? row_block : index == column ? column_block : 1; }
  bool in_tile(int index) const { return index == row || index == column; }
  bool whole(int index) const { return in_tile(index) && block(index) == loop(index).extent; }
  // Reduced loops that a block walks through step by step, outermost first.
  std::vector<int> stepped() const;
  // Every tile sees all it reduces, so that values stay in it from phase to phase.
  bool resident() const;
  // Steps along a loop that is no block index, of all blocks that share it.
  int64_t steps(int index) const;
  // Reduced loops over whose end steps hang.
  std::vector<int> ragged() const;
  int64_t blocks() const;
};

TilePlan plan_tiles(const PrimitiveGraph& graph, const Group& group, const TileSizes& sizes);

// The largest divisor of `extent` up to `limit`; `limit` itself if the divisors are all much smaller.
int64_t pick_block(int64_t extent, int64_t limit);

}  // namespace tilepilot::agent::builtin
