// Where the two operands of a GEMM lie as matrices: in a tile that the program has, or in one that is filled for it.
#pragma once

#include <optional>

#include "compiler/targets/cpu/plan/thread_gemms.h"

namespace tilepilot::targets::cpu {

// The steps that one `gemm` does: `count` of one loop from `first` on, for each all of the loops inside it.
struct Steps {
  ir::Var var;
  ir::Expr first;
  int64_t count;
  std::vector<Dimension> inner = {};

  int64_t size() const;
};

struct GemmOperand {
  ir::Region matrix;
  bool is_transposed = false;  // it has steps x rows, or columns x steps
  ir::Buffer tile;             // to be allocated; else null
  ir::Stmt fill;               // it
};
GemmOperand gemm_operand(const c::IntegerFacts& facts, const GemmSide& side, const Steps& steps, bool is_left);

// The number of an element in row-major order.
ir::Expr flat_index(const std::vector<ir::Expr>& indices, const std::vector<int64_t>& extents);

}  // namespace tilepilot::targets::cpu
