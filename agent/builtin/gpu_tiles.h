// Tiles of a GPU's blocks: what the compiler's model of the hardware recommends (compiler/targets/gpu/estimate/tiles.h,
// docs/tuning.md) for the loops of a group.
#pragma once

#include <optional>
#include <string_view>

#include "agent/builtin/tile_plan.h"
#include "agent/builtin/writer/product_prologue.h"
#include "compiler/targets/gpu/estimate/tiles.h"

namespace tilepilot::agent::builtin {

// The GPU that `--target` names, its emulation included; nullopt: the target is none.
std::optional<targets::gpu::Machine> gpu_of(std::string_view target);

// Of a plan with loops alone: its row, column, their blocks and its threads. `choice` is a place in the model's
// ranking; 0: the best.
void choose_gpu_tiles(TilePlan& plan, const PrimitiveGraph& graph, const Group& group,
                      const targets::gpu::Machine& hardware, size_t choice);

// Whether the plan has so few blocks for so many bytes that PyTorch is faster, whose several kernels walk through them
// with the whole machine: statistics of a few columns, say, of many rows.
bool has_too_few_blocks(const TilePlan& plan, int64_t bytes, const targets::gpu::Machine& machine);

// Of a product at the head of a kernel, whose loops are `loops` (product_loops). nullopt: the model knows none, as of
// rows that have to lie in one block but are longer than that.
std::optional<ProductTiles> gpu_product_tiles(const PrimitiveGraph& graph, const TilePlan& loops, int product,
                                              const targets::gpu::Machine& hardware, size_t choice);

// Whether a kernel is expected to make a product of float32 clearly faster than PyTorch: tensor cores multiply its
// parts (3xTF32), where PyTorch's threads multiply the numbers.
bool multiplies_faster(const PrimitiveGraph& graph, const TilePlan& loops, int product,
                       const targets::gpu::Machine& hardware);

}  // namespace tilepilot::agent::builtin
