// The shapes and types of wgmma, the matrix instruction of a warpgroup (sm_90a).
#pragma once

#include "compiler/ir/dtype.h"

namespace tilepilot::targets::gpu {

// c[64, n] = a[64, k] * b[k, n] (+ c), where rows of a and columns of b hold 32 bytes along k.
struct Wgmma {
  ir::DType a, b;  // float16, bfloat16, tfloat32, float8_e4m3 and e5m2 in any pair, int8 and uint8 in any pair
  ir::DType sum = ir::kFloat32;  // float32; int32 of integers; float16 of float16 and of floats of 8 bits
  int64_t n = 0;                 // a multiple of 8 from 8 to 256
  bool a_in_registers = false;   // else in shared memory, where b always is
  // In shared memory k is the axis whose elements are neighbours, or with these m and n (elements of 16 bits only).
  bool a_transposed = false, b_transposed = false;

  friend bool operator==(const Wgmma&, const Wgmma&) = default;
};

// Whether the machine has it.
bool is_wgmma(const Wgmma& shape);

}  // namespace tilepilot::targets::gpu
