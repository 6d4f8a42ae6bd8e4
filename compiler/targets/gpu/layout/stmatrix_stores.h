// Which stores of a parallel loop stmatrix can make: a warp writes matrices of 8 x 8 elements of 16 bits at once. Each
// row is 16 bytes of shared memory in a row; lanes hold the elements as tensor cores leave their sums, two neighbours
// of a row each, or of a column if the instruction transposes (layout/atoms.h, ldmatrix_fragment).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "compiler/ir/bounds.h"
#include "compiler/ir/stmt.h"
#include "compiler/layout/atoms.h"
#include "compiler/layout/shared_layout.h"

namespace tilepilot::targets::gpu {

constexpr int64_t kMatrixRow = 8;  // elements

// A loop's iterations as matrices. Threads: the first mode is the 4 words of a row, the second the 8 rows, or columns.
// Registers: the first mode is the 2 halves of a word, the next `digits` ones have 2 matrices each, which one
// instruction stores.
struct Matrices {
  layout::Fragment iterations;
  int64_t digits = 0;

  int64_t at_once() const { return int64_t{1} << digits; }
};

struct MatrixStores {
  std::optional<Matrices> matrices;  // if there are any
  std::unordered_map<const ir::StmtNode*, layout::Transposed> stores;
  std::string obstacle;  // why a store of elements of 16 bits that a fragment gives is none of them; "" if all are
};

using AffineForm = std::function<std::optional<ir::Affine>(const ir::Expr&)>;
// Of an index as the program writes it, where nothing is known of its variables yet.
std::optional<ir::Affine> affine_as_written(const ir::Expr& index);

// As far as the loop and its layout decide; rows_are_aligned says the rest. Stores must be all that is done with the
// tile, in every iteration, by whole warps.
// @post if there are matrices, their iterations are those of `fragment` in each thread, maybe in another order
MatrixStores find_matrix_stores(const ir::For& loop, const layout::Fragment& fragment, const AffineForm& affine);

// Whether rows of 8 elements that start at multiples of 8 are 16 bytes in a row that start at multiples of 16.
bool rows_are_aligned(const layout::SharedLayout& memory);

}  // namespace tilepilot::targets::gpu
