// Which stores of a parallel loop a warp makes together, and when accesses are in bounds.
#pragma once

#include <optional>

#include "compiler/targets/gpu/layout/stmatrix_stores.h"
#include "compiler/targets/gpu/layout/vector_access.h"
#include "compiler/targets/gpu/lower/lower.h"

namespace tilepilot::targets::gpu {

// The loop's stores that stmatrix makes where their tiles lie, on this architecture.
MatrixStores matrix_stores(const Lowering& lowering, const ir::For& loop, const layout::Fragment& fragment);

// When indices lie in their buffer, a conjunction; null if always.
ir::Expr bounds_condition(const Lowering& lowering, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

// A load or store that lanes do as vectors of a thread.
struct VectorMove {
  Vector vector;
  ir::Buffer registers;
  ir::Expr place;  // of the lanes in the registers
};
// The vector that begins at lane `first`. Out of bounds zeros are loaded, and nothing is stored. `by`: which threads
// store; null: all.
void load_vector(const Lowering& lowering, const VectorMove& move, int64_t first, Span span, Lowering::Stmts& out);
void store_vector(const Lowering& lowering, const VectorMove& move, int64_t first, const ir::Expr& by, Span span,
                  Lowering::Stmts& out);
// Adds it to what is there, each element atomically. @pre the machine adds vectors
void add_vector(const Lowering& lowering, const VectorMove& move, int64_t first, const ir::Expr& by, Span span,
                Lowering::Stmts& out);

// The indices with lets, added to `out`, in the place of what they load, as far as that is the same for all lanes: it
// is read once for addresses and checks of bounds, and what remains is arithmetic.
std::vector<ir::Expr> with_named_loads(const std::vector<ir::Expr>& indices, const ir::Var& lane, Span span,
                                       Lowering::Stmts& out);

}  // namespace tilepilot::targets::gpu
