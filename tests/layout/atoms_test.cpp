// The table of tensor-core instructions against the formulas of the PTX ISA, written out per instruction as they stand
// there: lane, group = lane / 4, within = lane % 4, and element i of the lane's registers.
#include "compiler/layout/atoms.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "compiler/layout/reshape.h"
#include "tests/layout/atom_named.h"

namespace tilepilot::layout {
namespace {

using testing::half_atom;

struct At {
  int64_t row, column;
};
using Formula = std::function<At(int64_t lane, int64_t i)>;

struct Described {
  std::string_view instruction;
  std::vector<std::string_view> operands;
  Formula a, b;
  int64_t a_elements, b_elements;
};

// "Matrix Fragments for mma.m16n8k16 with floating point type" and its neighbours.
const std::vector<Described>& described() {
  static const std::vector<Described> list = {
      {"mma.sync.m16n8k8",
       {"f16", "bf16"},
       [](int64_t lane, int64_t i) {
         return At{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
       },
       [](int64_t lane, int64_t i) {
         return At{lane % 4 * 2 + i, lane / 4};
       },
       4,
       2},
      {"mma.sync.m16n8k16",
       {"f16 bf16"},
       [](int64_t lane, int64_t i) {
         const bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
         return At{upper ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
       },
       [](int64_t lane, int64_t i) {
         return At{lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
       },
       8,
       4},
      {"mma.sync.m16n8k4",
       {"tf32", "f64"},
       [](int64_t lane, int64_t i) {
         return At{i == 0 ? lane / 4 : lane / 4 + 8, lane % 4};
       },
       [](int64_t lane, int64_t) {
         return At{lane % 4, lane / 4};
       },
       2,
       1},
      {"mma.sync.m16n8k8",
       {"tf32", "f64"},
       [](int64_t lane, int64_t i) {
         return At{i == 0 || i == 2 ? lane / 4 : lane / 4 + 8, i < 2 ? lane % 4 : lane % 4 + 4};
       },
       [](int64_t lane, int64_t i) {
         return At{i == 0 ? lane % 4 : lane % 4 + 4, lane / 4};
       },
       4,
       2},
      {"mma.sync.m16n8k16",
       {"s8 u8"},
       [](int64_t lane, int64_t i) {
         return At{i < 4 ? lane / 4 : lane / 4 + 8, lane % 4 * 4 + (i & 3)};
       },
       [](int64_t lane, int64_t i) {
         return At{lane % 4 * 4 + i, lane / 4};
       },
       8,
       4},
      {"mma.sync.m16n8k32",
       {"s8 u8", "e4m3 e5m2"},
       [](int64_t lane, int64_t i) {
         const bool upper = (i >= 0 && i < 4) || (i >= 8 && i < 12);
         return At{upper ? lane / 4 : lane / 4 + 8, lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
       },
       [](int64_t lane, int64_t i) {
         return At{lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), lane / 4};
       },
       16,
       8},
      {"mma.sync.m8n8k4",
       {"f64"},
       [](int64_t lane, int64_t) {
         return At{lane / 4, lane % 4};
       },
       [](int64_t lane, int64_t) {
         return At{lane % 4, lane / 4};
       },
       1,
       1},
      {"mma.sync.m16n8k16",
       {"f64"},
       [](int64_t lane, int64_t i) {
         return At{i % 2 == 0 ? lane / 4 : lane / 4 + 8, i / 2 * 4 + lane % 4};
       },
       [](int64_t lane, int64_t i) {
         return At{lane % 4 + i * 4, lane / 4};
       },
       8,
       4},
  };
  return list;
}

const Described& description_of(const Atom& atom) {
  for (const Described& described : described()) {
    for (std::string_view operands : described.operands) {
      if (described.instruction == atom.instruction && operands == atom.operands) return described;
    }
  }
  throw std::out_of_range("no description of " + std::string(atom.instruction));
}

void expect_formula(const Fragment& fragment, int64_t elements, const Formula& formula) {
  ASSERT_EQ(fragment.register_count(), elements);
  std::set<int64_t> seen;
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
    for (int64_t i = 0; i < elements; ++i) {
      const At at = formula(thread, i);
      const int64_t expected = row_major_index(fragment.shape(), {at.row, at.column});
      ASSERT_EQ(fragment.element({thread, i}), expected) << "thread " << thread << ", element " << i;
      seen.insert(expected);
    }
  }
  ASSERT_EQ(int64_t(seen.size()), volume(fragment.shape()));
}

TEST(Atoms, OfAWarpHoldWhatPtxDescribes) {
  int checked = 0;
  for (const Atom& atom : atoms()) {
    if (atom.threads != 32) continue;
    SCOPED_TRACE(std::string(atom.instruction) + " " + std::string(atom.operands));
    const Described& described = description_of(atom);
    EXPECT_EQ(a_fragment(atom).shape(), (Shape{atom.m, atom.k}));
    EXPECT_EQ(b_fragment(atom).shape(), (Shape{atom.k, atom.n}));
    EXPECT_EQ(c_fragment(atom).shape(), (Shape{atom.m, atom.n}));
    expect_formula(a_fragment(atom), described.a_elements, described.a);
    expect_formula(b_fragment(atom), described.b_elements, described.b);
    expect_formula(c_fragment(atom), atom.m / 4, [](int64_t lane, int64_t i) {
      return At{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
    });
    ++checked;
  }
  EXPECT_EQ(checked, 12);
}

// "Register Fragments" of wgmma: warp w of the group holds rows 16 * w to 16 * w + 15.
TEST(Atoms, OfAWarpgroupHoldWhatPtxDescribes) {
  int checked = 0;
  for (const Atom& atom : atoms()) {
    if (atom.threads != 128) continue;
    SCOPED_TRACE(std::string(atom.instruction));
    const int64_t packed = 32 / atom.operand_bits;
    expect_formula(a_fragment(atom), 4 * packed, [&](int64_t thread, int64_t i) {
      const int64_t lane = thread % 32, word = i / packed;
      return At{thread / 32 * 16 + lane / 4 + word % 2 * 8, word / 2 * 4 * packed + lane % 4 * packed + i % packed};
    });
    for (int64_t n = 8; n <= 256; n += 8) {
      expect_formula(c_fragment(with_n(atom, n)), n / 2, [](int64_t thread, int64_t i) {
        const int64_t lane = thread % 32;
        return At{thread / 32 * 16 + lane / 4 + (i / 2 % 2 == 1 ? 8 : 0), i / 4 * 8 + lane % 4 * 2 + i % 2};
      });
    }
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

// The rule of thumb that generated code is read with.
TEST(Atoms, KeepAccumulatorsInQuads) {
  for (const Atom& atom : atoms()) {
    if (atom.threads != 32) continue;
    const Fragment accumulator = c_fragment(atom);
    for (int64_t i = 0; i < atom.m; ++i) {
      for (int64_t j = 0; j < atom.n; ++j) {
        const std::vector<Place> expected = {{i % 8 * 4 + j % 8 / 2, 2 * (i / 8) + j % 2}};
        EXPECT_EQ(accumulator.owners(row_major_index(accumulator.shape(), {i, j})), expected);
      }
    }
  }
}

TEST(Ldmatrix, GivesFourLanesARowOrAColumn) {
  for (int64_t matrices : {1, 2, 4}) {
    expect_formula(ldmatrix_fragment(matrices, Transposed::no), 2 * matrices, [](int64_t lane, int64_t i) {
      return At{i / 2 * 8 + lane / 4, lane % 4 * 2 + i % 2};
    });
    expect_formula(ldmatrix_fragment(matrices, Transposed::yes), 2 * matrices, [](int64_t lane, int64_t i) {
      return At{i / 2 * 8 + lane % 4 * 2 + i % 2, lane / 4};
    });
  }
}

// Four 8 x 8 matrices, two below each other, then the two to their right, are the left operand of m16n8k16; with
// .trans, two matrices below each other are the right one.
TEST(Ldmatrix, LoadsOperandsAsTheyAreNeeded) {
  const Fragment a = a_fragment(half_atom()), b = b_fragment(half_atom());
  const Fragment four = ldmatrix_fragment(4, Transposed::no), two = ldmatrix_fragment(2, Transposed::yes);
  for (int64_t lane = 0; lane < 32; ++lane) {
    for (int64_t reg = 0; reg < 8; ++reg) {
      const Coordinates at = coordinates({2, 2, 8, 8}, four.element({lane, reg}).value());
      EXPECT_EQ(a.element({lane, reg}), row_major_index({16, 16}, {at[1] * 8 + at[2], at[0] * 8 + at[3]}));
    }
    for (int64_t reg = 0; reg < 4; ++reg) EXPECT_EQ(b.element({lane, reg}), two.element({lane, reg}));
  }
}

// A block's tile: 2 x 2 warps, each with 2 x 4 atoms; operands are held by each warp that multiplies with them.
TEST(Atoms, RepeatOverWarpsAndTiles) {
  const auto again = [](const Fragment& fragment, size_t axis, int64_t count, Across across) {
    return repeated(fragment, {axis, count, across}).value();
  };
  Fragment c = c_fragment(half_atom()), a = a_fragment(half_atom());
  c = again(again(c, 0, 2, Across::registers), 1, 4, Across::registers);
  c = again(again(c, 0, 2, Across::threads), 1, 2, Across::threads);
  a = replicated(again(again(a, 0, 2, Across::registers), 0, 2, Across::threads), 2);
  EXPECT_EQ(c.shape(), (Shape{64, 64}));
  EXPECT_EQ(c.thread_count(), 128);
  EXPECT_EQ(c.register_count(), 32);
  EXPECT_EQ(a.shape(), (Shape{64, 16}));
  EXPECT_EQ(a.replicas(), 2);
  for (int64_t thread = 0; thread < 128; ++thread) {
    const int64_t lane = thread % 32, warp_row = thread / 32 % 2, warp_column = thread / 64;
    for (int64_t reg = 0; reg < 32; ++reg) {
      const int64_t i = reg % 4, row_atom = reg / 4 % 2, column_atom = reg / 8;
      const int64_t row = warp_row * 32 + row_atom * 16 + lane / 4 + (i < 2 ? 0 : 8);
      const int64_t column = warp_column * 32 + column_atom * 8 + lane % 4 * 2 + i % 2;
      ASSERT_EQ(c.element({thread, reg}), row * 64 + column);
    }
    // A row of C and the same row of A are in the same warps.
    const int64_t row = *a.element({thread, 0}) / 16;
    EXPECT_EQ(row / 32, warp_row);
  }
}

}  // namespace
}  // namespace tilepilot::layout
