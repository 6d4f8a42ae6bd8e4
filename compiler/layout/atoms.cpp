#include "compiler/layout/atoms.h"

#include <algorithm>
#include <cassert>

#include "compiler/layout/reshape.h"

namespace tilepilot::layout {
namespace {

// PTX ISA, "Warp Level Matrix Instructions" and "Asynchronous Warpgroup Level Matrix Instructions": for each row of the
// table a section "Matrix Fragments for ..." with the formulas, and "Target ISA Notes" with the architecture (wgmma:
// sm_90a).
constexpr Atom kAtoms[] = {
    {"mma.sync.m16n8k8", "f16", 16, 8, 8, 16, 32, 75},
    {"mma.sync.m16n8k8", "bf16", 16, 8, 8, 16, 32, 80},
    {"mma.sync.m16n8k16", "f16 bf16", 16, 8, 16, 16, 32, 80},
    {"mma.sync.m16n8k4", "tf32", 16, 8, 4, 32, 32, 80},
    {"mma.sync.m16n8k8", "tf32", 16, 8, 8, 32, 32, 80},
    {"mma.sync.m16n8k16", "s8 u8", 16, 8, 16, 8, 32, 80},
    {"mma.sync.m16n8k32", "s8 u8", 16, 8, 32, 8, 32, 80},
    {"mma.sync.m16n8k32", "e4m3 e5m2", 16, 8, 32, 8, 32, 89},
    {"mma.sync.m8n8k4", "f64", 8, 8, 4, 64, 32, 80},
    {"mma.sync.m16n8k4", "f64", 16, 8, 4, 64, 32, 90},
    {"mma.sync.m16n8k8", "f64", 16, 8, 8, 64, 32, 90},
    {"mma.sync.m16n8k16", "f64", 16, 8, 16, 64, 32, 90},
    {"wgmma.mma_async.m64nNk16", "f16 bf16", 64, 0, 16, 16, 128, 90},
    {"wgmma.mma_async.m64nNk8", "tf32", 64, 0, 8, 32, 128, 90},
    {"wgmma.mma_async.m64nNk32", "e4m3 e5m2 s8 u8", 64, 0, 32, 8, 128, 90},
};

// The pattern. Lane 4 * g + t holds elements [t * run, (t + 1) * run) of row g of an 8 x (4 * run) block; further
// registers hold the block 8 rows below, if a warp has 16 rows, then blocks to the right; further warps 16 rows each.
Fragment pattern(int64_t rows, int64_t columns, int64_t run) {
  const int64_t warp_rows = std::min<int64_t>(rows, 16);
  return Fragment({rows, columns}, Layout{{4, run}, {8, columns}, {rows / warp_rows, warp_rows * columns}},
                  Layout{{run, 1}, {warp_rows / 8, 8 * columns}, {columns / (4 * run), 4 * run}});
}

// Elements of an operand in a 32-bit register; elements of 64 bits take two registers each.
int64_t packed(const Atom& atom) { return std::max<int64_t>(1, 32 / atom.operand_bits); }

}  // namespace

std::span<const Atom> atoms() { return kAtoms; }

Atom with_n(const Atom& atom, int64_t n) {
  assert(atom.threads == 128 && n >= 8 && n <= 256 && n % 8 == 0);
  Atom sized = atom;
  sized.n = n;
  return sized;
}

Fragment a_fragment(const Atom& atom) { return pattern(atom.m, atom.k, packed(atom)); }

// B is the pattern of its transpose: lanes stand in its columns, and what a register packs lies along k.
Fragment b_fragment(const Atom& atom) {
  assert(atom.threads == kWarpSize);
  return *permuted(pattern(atom.n, atom.k, packed(atom)), {1, 0});
}

Fragment c_fragment(const Atom& atom) {
  assert(atom.n > 0);
  return pattern(atom.m, atom.n, 2);
}

// PTX ISA, "Warp-level matrix load instruction: ldmatrix": a matrix goes to four lanes a row, two elements each; with
// .trans, to four lanes a column.
Fragment ldmatrix_fragment(int64_t matrices, Transposed transposed) {
  assert(matrices == 1 || matrices == 2 || matrices == 4);
  const Fragment one = pattern(8, 8, 2);
  const Fragment loaded = transposed == Transposed::yes ? *permuted(one, {1, 0}) : one;
  return *repeated(loaded, {.axis = 0, .count = matrices, .across = Across::registers});
}

}  // namespace tilepilot::layout
