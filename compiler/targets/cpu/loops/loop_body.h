// What the body of a parallel loop does to memory, and with which loop variables: what the emitters of such loops
// decide by.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cpu {

struct Dimension {
  ir::Var var;
  ir::Expr extent;
};

// Indices with lets replaced by their values: what matters is how they depend on the loops' variables.
struct Access {
  const ir::Buffer& buffer;
  std::vector<ir::Expr> indices;
  bool is_store;
};
std::vector<Access> accesses(const c::IntegerFacts& facts, const ir::Stmt& body);

using ir::contains;
using ir::mentions;
// The statements of a block and of the blocks in it, one after the other.
std::vector<ir::Stmt> flattened(const ir::Stmt& stmt);
inline bool contains_loop(const ir::Stmt& body) { return contains<ir::For, ir::While>(body); }

// How many accesses walk memory one element at a time when `var` is innermost, minus those that jump.
int contiguity(const std::vector<Access>& all, const ir::Var& var);
// Moves the dimension of the best contiguity to the end.
void order_for(const std::vector<Access>& all, std::vector<Dimension>& dimensions);

// Whether iterations that differ in these dimensions update the same element (passes/iterations/iteration_conflicts.h):
// they must follow one another. `own`: buffers of which each iteration has one of its own.
bool updates_conflict(const std::vector<Dimension>& dimensions, const ir::Stmt& body, const ir::BufferSet& own = {});

// True if each iteration writes elements of its own.
bool stores_are_private(const c::IntegerFacts& facts, const std::vector<Dimension>& dimensions, const ir::Stmt& body,
                        const ir::BufferSet& own = {});

// Whether the host's compiler should write the loop out: the program asks for it, and with the loops below that are,
// too, no more than 64 bodies come of it.
bool is_unrolled(const ir::For& loop);

// How often a statement names each buffer.
std::unordered_map<const ir::BufferData*, int64_t> count_uses(const ir::Stmt& body);

}  // namespace tilepilot::targets::cpu
