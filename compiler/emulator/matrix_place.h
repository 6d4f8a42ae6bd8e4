// Where elements lie in shared memory for TMA and wgmma.
#pragma once

#include <cstdint>

#include "compiler/emulator/prelude/interface.h.in"

namespace tilepilot::emulator {

// The address of a byte in rows of `width` bytes (32, 64 or 128; else it stays): 16-byte chunks of a row are exchanged
// by the row's number. PTX ISA, "Swizzling Modes".
inline int64_t swizzled(int64_t address, int64_t width) {
  const int64_t mask = width == 128 ? 7 : width == 64 ? 3 : width == 32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

// An operand of wgmma (PTX ISA, "Matrix Descriptor Format" and "Strides").
struct MatrixPlace {
  int64_t start, leading, stride, width;  // width: of the swizzle; 16: none

  explicit MatrixPlace(uint64_t descriptor);
  // Of element (mn, k) of `bytes` bytes; mn counts rows of a or columns of b. `transposed`: neighbours lie along mn.
  int64_t at(int64_t mn, int64_t k, int64_t bytes, bool transposed) const;
};

// *to += *from
void add_element(emulated::operand type, char* to, const char* from);

}  // namespace tilepilot::emulator
