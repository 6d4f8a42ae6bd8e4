// The tensor-core instructions and who holds what in them. All of them are made of one pattern, so a row of the table
// says only sizes: lanes stand in 8 rows of 4, and each holds neighbouring elements of its row that fill 32 bits.
#pragma once

#include <span>
#include <string_view>

#include "compiler/layout/fragment.h"

namespace tilepilot::layout {

// D = A * B + C with A m x k, B k x n, C and D m x n.
struct Atom {
  std::string_view instruction;  // as PTX spells it, without the types
  std::string_view operands;     // the types of A and B, as PTX spells them
  int64_t m, n, k;               // wgmma has n of 0 here, and any multiple of 8 up to 256 (see with_n)
  int64_t operand_bits;          // of an element of A and B
  int64_t threads;               // 32: a warp (mma.sync); 128: a warpgroup (wgmma)
  int sm;                        // the first architecture that has it
};

std::span<const Atom> atoms();

// @pre the atom is a wgmma; n is a multiple of 8 from 8 to 256
Atom with_n(const Atom& atom, int64_t n);

// @post a bijection of (thread, register) with the elements; register i is element ai, bi or ci of PTX's description
Fragment a_fragment(const Atom& atom);
// @pre the atom is no wgmma, which reads B from shared memory
Fragment b_fragment(const Atom& atom);
// Of C and of D. @pre a wgmma has its n
Fragment c_fragment(const Atom& atom);

enum class Transposed { no, yes };
// What `ldmatrix.m8n8.xN[.trans].b16` loads, and stmatrix stores: 1, 2 or 4 matrices of 8 x 8 elements of 16 bits,
// stacked to a tile of 8 * matrices rows. Register pair j comes from matrix j. Lane l passes the address of row l of
// the stack; lanes beyond pass anything.
Fragment ldmatrix_fragment(int64_t matrices, Transposed transposed);

}  // namespace tilepilot::layout
