// Where the elements of shared tiles lie: swizzled where tensor cores read several rows at the same place at once, or
// the copy engine wants panels; swizzled or padded where what moves their sums does so; else row by row.
#pragma once

#include <unordered_set>

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Sets `inference.tiles`. `viewed`: tiles that are seen as other types or shapes, which stay row-major.
// @pre loops and products of the inference are those of the kernel
void place_tiles(const ir::Kernel& kernel, const std::unordered_set<const ir::BufferData*>& viewed,
                 Inference& inference);

// Tiles that the copy engine fills or stores by boxes: it knows swizzles, no padding.
std::unordered_set<const ir::BufferData*> tiles_of_boxes(const ir::Stmt& body);

// Tiles whose elements must follow each other in memory: of copies of consecutive bytes and of foreign functions.
std::unordered_set<const ir::BufferData*> tiles_in_order(const ir::Stmt& body);

}  // namespace tilepilot::targets::gpu
