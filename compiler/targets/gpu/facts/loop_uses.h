// How parallel loops name the elements of buffers: what decides, and what follows from, how their iterations are dealt
// out to threads.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/layout/shape.h"

namespace tilepilot::targets::gpu {

// The extents of a tile; 1 where an axis has no constant one.
layout::Shape shape_of(const ir::Buffer& buffer);

// One use of a fragment or tensor by element.
struct Use {
  ir::Buffer buffer;
  std::vector<ir::Expr> indices;
  bool changes = false;  // stored to, or changed as a whole
};
std::vector<Use> uses_of(const ir::Stmt& stmt);

struct ParallelLoop {
  ir::Stmt stmt;
  int64_t times = 1;  // that a block runs it, about: loops around it whose extents are known count
  std::vector<ir::Var> vars;
  layout::Shape extents;
  std::vector<Use> uses;

  const ir::Stmt& body() const;
};
// None if an extent is known at launch alone. @pre it is a parallel loop
std::optional<ParallelLoop> parallel_loop(const ir::Stmt& stmt, int64_t times);

// Elements of 16 bytes of the widest tensor that the loop walks; what neighbours find at one place counts as little as
// a constant.
int64_t vector_elements(const ParallelLoop& loop);

// A reduction or scan.
struct TileReduction {
  ir::Stmt stmt;
  int64_t times = 1;
};

// Which loop variable is the index of each axis of a buffer; none where the axis has one element.
using Pattern = std::vector<std::optional<size_t>>;
std::optional<Pattern> pattern_of(const Use& use, const std::vector<ir::Var>& vars);
// How many variables of the loop its pattern has; 0 without one.
size_t variable_count(const Use& use, const ParallelLoop& loop);

}  // namespace tilepilot::targets::gpu
