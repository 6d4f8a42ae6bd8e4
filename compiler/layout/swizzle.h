// The XOR swizzles of shared memory: permutations of addresses that spread what lies in one column of a tile over all
// banks. Tensor memory accesses (TMA) and wgmma descriptors know three of them by the bytes that they permute within.
//
// Definition. Swizzle (bits, base, shift) maps x to x ^ ((x >> shift) & m), where m = (2^bits - 1) * 2^base: the `bits`
// bits from `base` on are xored with those `shift` higher.
#pragma once

#include <cstdint>

namespace tilepilot::layout {

struct Swizzle {
  // @pre shift >= bits, so that the bits that change are not the bits that decide
  int bits = 0;
  int base = 0;
  int shift = 0;

  // @post a permutation of each aligned block of 2^(base + bits) numbers, and its own inverse
  int64_t operator()(int64_t x) const { return x ^ ((x >> shift) & (((int64_t{1} << bits) - 1) << base)); }

  friend bool operator==(const Swizzle&, const Swizzle&) = default;
};

// What a swizzle permutes within, in bytes. Pieces of 16 bytes stay whole; they trade places within `span` bytes,
// depending on which of 8 groups of 128 bytes they lie in (PTX ISA, "Swizzling modes" of tensors).
enum class SwizzleSpan : int64_t { none = 0, bytes_32 = 32, bytes_64 = 64, bytes_128 = 128 };

// The swizzle on offsets counted in elements.
// @pre element_bits is a power of two from 1 to 128
// @post the element at row i, piece c of a tile with rows of `span` bytes goes to piece c ^ (i % 8 * span / 128)
Swizzle swizzle_of(SwizzleSpan span, int64_t element_bits);

// The alignment of a tile's first byte that makes address bits and offset bits agree: 1024, 512, 256; none: 128.
int64_t alignment(SwizzleSpan span);

// The widest swizzle for a tile with rows of so many bytes; none if no swizzle fits.
SwizzleSpan span_of_rows(int64_t bytes);

}  // namespace tilepilot::layout
