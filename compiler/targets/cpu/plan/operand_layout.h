// Which tile buffers are kept in the form that the matrix kernels read, so that the copy which fills them packs them:
// buffers that are only written whole, by copies and fills, and only read whole, as the same operand of products.
#pragma once

#include <optional>
#include <unordered_map>

#include "compiler/ir/stmt.h"
#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

using c::OperandLayout, c::OperandLayouts;

OperandLayouts choose_operand_layouts(const ir::Kernel& kernel);

// The type in which a product is computed.
ir::DType gemm_type(const ir::Gemm& gemm);
// Columns of a panel are padded to this many elements at most, on any machine.
inline constexpr int64_t kWidestPanel = 32;

// Elements of a buffer in operand layout, padding included.
int64_t packed_elements(const ir::Buffer& buffer, const OperandLayout& layout);

// True if the region is the whole of a buffer with constant extents.
bool covers_buffer(const ir::Region& region);

}  // namespace tilepilot::targets::cpu
