// Shared-memory layouts: swizzled where tensor cores read the same columns of several rows at once, or TMA needs
// panels; swizzled or padded where accumulators are stored so; else row-major.
#pragma once

#include <unordered_set>

#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Sets `inference.tiles`. `viewed`: tiles that are seen as other types or shapes, which stay row-major.
// @pre loops and GEMMs of the inference are those of the kernel
void lay_out_shared_tiles(const ir::Kernel& kernel, const std::unordered_set<const ir::BufferData*>& viewed,
                          Inference& inference);

// Tiles that TMA fills or stores by boxes: it supports swizzles, no padding.
std::unordered_set<const ir::BufferData*> tiles_of_boxes(const ir::Stmt& body);

// Tiles whose elements must follow each other in memory: of copies of consecutive bytes and of foreign functions.
std::unordered_set<const ir::BufferData*> tiles_in_order(const ir::Stmt& body);

}  // namespace tilepilot::targets::gpu
