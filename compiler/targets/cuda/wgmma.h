// Asynchronous products of sm_90a as functions of generated code. There are thousands of shapes and types, so the
// prelude has none of them: a unit gets the text of those that it calls.
#pragma once

#include <string>

#include "compiler/ir/dtype.h"

namespace tilepilot::targets::cuda {

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
// "wgmma_m64n128k16_f32_f16_f16", with "_ra" for a in registers, "_ta" and "_tb" for transposed operands.
std::string wgmma_name(const Wgmma& shape);
// void NAME(sum* c, a, uint64_t b, bool accumulate), where a in registers is `const type* a`, else `uint64_t a`;
// places in shared memory are of matrix_place. @pre is_wgmma(shape)
std::string wgmma_function(const Wgmma& shape);

}  // namespace tilepilot::targets::cuda
