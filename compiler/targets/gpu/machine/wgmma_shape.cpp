#include "compiler/targets/gpu/machine/wgmma_shape.h"

namespace tilepilot::targets::gpu {
namespace {

bool is_byte_float(ir::DType type) { return type == ir::kFloat8E4M3 || type == ir::kFloat8E5M2; }

}  // namespace

bool is_wgmma(const Wgmma& shape) {
  if (shape.n < 8 || shape.n > 256 || shape.n % 8 != 0) return false;
  if (shape.a_in_registers && shape.a_transposed) return false;
  if ((shape.a_transposed || shape.b_transposed) && shape.a.bits != 16) return false;
  const bool is_integer = shape.a == ir::kInt8 || shape.a == ir::kUInt8;
  // Of integers the machine has few numbers of columns (PTX ISA, "Asynchronous wgmma Matrix Shape").
  if (is_integer)
    return (shape.b == ir::kInt8 || shape.b == ir::kUInt8) && shape.sum == ir::kInt32 &&
           (shape.n <= 32 || shape.n % 16 == 0);
  const bool sums_halves = shape.sum == ir::kFloat16 && (shape.a == ir::kFloat16 || is_byte_float(shape.a));
  if (shape.sum != ir::kFloat32 && !sums_halves) return false;
  if (is_byte_float(shape.a)) return is_byte_float(shape.b);
  return shape.a == shape.b && (shape.a.bits == 16 || shape.a == ir::kTensorFloat32) && shape.a.is_float();
}

}  // namespace tilepilot::targets::gpu
